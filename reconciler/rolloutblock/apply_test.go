// SPDX-License-Identifier: Apache-2.0

package rolloutblock

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// blocks is an API server that knows which blocks there are, and notes what overrides are written.
type blocks struct {
	client.Client
	there   map[string]bool
	away    error
	asked   int
	written []string
}

// Get is client.Reader.
func (b *blocks) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	b.asked++
	if b.away != nil || b.there[key.String()] {
		o.SetUID("uid-of-" + types.UID(key.Name))
		return b.away
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.String())
}

// Patch is client.Writer.
func (b *blocks) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
	b.written = append(b.written, o.GetName()+": "+o.GetAnnotations()[shipper.RolloutBlockOverrideAnnotation])
	return nil
}

func TestAllBlocksThatAreGoneAreCleanedAtOnce(t *testing.T) {
	meta := func(name, override string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Annotations: map[string]string{shipper.RolloutBlockOverrideAnnotation: override}}
	}
	by := func() namers {
		return namers{
			applications: []shipper.Application{{ObjectMeta: meta("app", "a/gone,b/gone,c/there")}},
			releases:     []shipper.Release{{ObjectMeta: meta("rel", "a/gone,b/gone")}},
		}
	}
	api := &blocks{there: map[string]bool{"c/there": true}}
	r := &Reconciler{client: api, live: api}
	if err := r.clean(t.Context(), types.NamespacedName{Namespace: "a", Name: "gone"}, by()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"app: c/there", "rel: "}, api.written); diff != "" || api.asked != 3 {
		t.Errorf("asked about blocks %d times, want 3; written (-want +got):\n%s", api.asked, diff)
	}

	api = &blocks{there: map[string]bool{"c/there": true}}
	r = &Reconciler{client: api, live: api}
	if err := r.clean(t.Context(), types.NamespacedName{Namespace: "c", Name: "there"}, by()); err != nil || len(api.written) > 0 {
		t.Errorf("a block that is there was cleaned: %v, %v", api.written, err)
	}
	api.away = errors.New("away")
	err := r.clean(t.Context(), types.NamespacedName{Namespace: "a", Name: "gone"}, by())
	if !errors.Is(err, api.away) || len(api.written) > 0 {
		t.Errorf("the block was not reported gone, and still: %v, %v", api.written, err)
	}
}
