// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
)

// errKilled is the answer to a process that was killed.
var errKilled = errors.New("killed")

// mortal is a management cluster whose clients are killed by a write.
type mortal struct {
	client.Client
	writes int
	// fails is the number of the write after which all writes fail; 0 for none. lost is true if that write has no effect.
	fails int
	lost  bool
}

func (m *mortal) write(do func() error) error {
	if m.writes++; m.fails > 0 && (m.writes > m.fails || m.writes == m.fails && m.lost) {
		return errKilled
	}
	err := do()
	if m.writes == m.fails && err == nil {
		err = errKilled
	}
	return err
}

func newMortal(t *testing.T) *mortal {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(shipper.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	m := &mortal{}
	m.Client = fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, to client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return m.write(func() error {
				o.SetUID(types.UID(o.GetName()))
				return to.Create(ctx, o, options...)
			})
		},
		Patch: func(ctx context.Context, to client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			return m.write(func() error { return to.Patch(ctx, o, p, options...) })
		},
		Delete: func(ctx context.Context, to client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return m.write(func() error { return to.Delete(ctx, o, options...) })
		},
	}).Build()
	return m
}

// state is what a management cluster has in the end.
func (m *mortal) state(t *testing.T) []string {
	t.Helper()
	var out []string
	var kept shipper.ResourceSnapshotList
	var secrets corev1.SecretList
	if err := errors.Join(m.List(t.Context(), &kept), m.List(t.Context(), &secrets)); err != nil {
		t.Fatal(err)
	}
	add := func(o client.Object) {
		line := fmt.Sprintf("%T %s of", o, o.GetName())
		for _, ref := range o.GetOwnerReferences() {
			line += " " + ref.Name
		}
		out = append(out, line)
	}
	for i := range kept.Items {
		add(&kept.Items[i])
	}
	for i := range secrets.Items {
		add(&secrets.Items[i])
	}
	slices.Sort(out)
	return out
}

// TestAKillAfterAnyWriteEndsInTheSameState keeps content with Secrets, gives it to a Release, and keeps content that gets none.
func TestAKillAfterAnyWriteEndsInTheSameState(t *testing.T) {
	whole := many(t)
	list, err := objects.Join(whole)
	if err != nil {
		t.Fatal(err)
	}
	other, err := objects.Split(list[:2])
	if err != nil {
		t.Fatal(err)
	}
	rel := release("web-0", whole[0].Digest)
	rel.Labels = map[string]string{shipper.AppLabel: "web"}
	live := func(n int, lost bool) (state []string, writes int) {
		m := newMortal(t)
		if err := m.Create(t.Context(), rel.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		m.writes = 0
		m.fails, m.lost = n, lost
		for _, step := range []func(*Resources) error{
			func(s *Resources) error { return s.Keep(t.Context(), app(), nil, whole) },
			func(s *Resources) error {
				return s.SetOwners(t.Context(), app(), []*shipper.Release{rel}, whole[0].Digest)
			},
			func(s *Resources) error { return s.Keep(t.Context(), app(), []*shipper.Release{rel}, other) },
			func(s *Resources) error {
				return s.SetOwners(t.Context(), app(), []*shipper.Release{rel}, whole[0].Digest)
			},
		} {
			err := step(NewResources(m, m))
			if errors.Is(err, errKilled) { // the next process begins again
				m.fails = 0
				err = step(NewResources(m, m))
			}
			if err != nil {
				t.Fatalf("killed at %d: %v", n, err)
			}
		}
		return m.state(t), m.writes
	}
	want, writes := live(0, false)
	if len(want) < len(whole) || writes <= len(whole)+len(other) {
		t.Fatalf("undisturbed there are %d writes, and in the end\n%v", writes, want)
	}
	for n := 1; n <= writes; n++ {
		for _, lost := range []bool{true, false} {
			got, _ := live(n, lost)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("killed at write %d, which is lost: %t (-want +got):\n%s", n, lost, diff)
			}
		}
	}
}
