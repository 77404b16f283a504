// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/reconciler/resourcesnapshot"
	"shipper.dev/shipper/reconciler/retry"
)

// errKilled is the answer to a process that was killed.
var errKilled = errors.New("killed")

// cluster is a management cluster that counts writes.
type cluster struct {
	client.WithWatch
	writes int
	// fails is the number of the write after which all requests fail; 0 for none. lost is true if that write has no effect.
	fails int
	lost  bool
	// unasked is true when no webhook answers whether content may be taken.
	unasked bool
}

// answer is the webhook's to a pin that asks.
func (c *cluster) answer() error {
	if c.unasked {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Reason: metav1.StatusReasonForbidden, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: shipper.SelectionAllowed}}},
	}}
}

func newCluster(t *testing.T, known ...client.Object) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(shipper.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion, shipper.GroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(resourcesnapshot.Kind(), meta.RESTScopeNamespace)
	c := &cluster{}
	write := func(do func() error) error {
		if c.writes++; c.fails > 0 && (c.writes > c.fails || c.writes == c.fails && c.lost) {
			return errKilled
		}
		err := do()
		if c.writes == c.fails && err == nil {
			err = errKilled
		}
		return err
	}
	for _, o := range known {
		if app, ok := o.(*shipper.Application); ok {
			app.Status.Conditions = shipper.SetCondition(nil, shipper.Condition{Type: shipper.ApplicationBlocked}, metav1.Time{})
		}
	}
	c.WithWatch = clientfake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(known...).
		WithStatusSubresource(&shipper.Application{}).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, to client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return write(func() error {
				o.SetUID(types.UID("uid-" + o.GetName()))
				return to.Create(ctx, o, options...)
			})
		},
		Patch: func(ctx context.Context, to client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			if app, ok := o.(*shipper.Application); ok && app.Spec.Template.Pins.Digest() == shipper.AskingPin {
				return c.answer()
			}
			return write(func() error { return to.Patch(ctx, o, p, options...) })
		},
		Delete: func(ctx context.Context, to client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return write(func() error { return to.Delete(ctx, o, options...) })
		},
		SubResourcePatch: func(
			ctx context.Context, to client.Client, sub string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption,
		) error {
			return write(func() error { return to.SubResource(sub).Patch(ctx, o, p, options...) })
		},
	}).Build()
	return c
}

// Releases are those of the namespace.
func (c *cluster) Releases(ctx context.Context, app client.ObjectKey) ([]*shipper.Release, error) {
	var list shipper.ReleaseList
	err := c.List(ctx, &list, client.InNamespace(app.Namespace))
	var out []*shipper.Release
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, err
}

// process is a reconciler that has just started.
func (c *cluster) process(t *testing.T) *Reconciler {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Unix(1, 0))
	changed := newChanges(clock)
	lag, err := newLag(nil)
	if err != nil {
		t.Fatal(err)
	}
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{
		client: c, snapshots: resourcesnapshot.New(c, c), releases: c, clock: clock, changes: changed, lag: lag,
		reader:   newReader(c, c.RESTMapper(), nil, objects.Policy{}),
		watches:  newWatches(fake.NewSimpleMetadataClient(scheme), allows{}, changed),
		recorder: events.NewFakeRecorder(100), retrier: retry.NewRetrier(retry.Limiter[ctrl.Request]()), taken: map[types.NamespacedName]string{},
	}
	queue := workqueue.NewTypedRateLimitingQueue(retry.Limiter[ctrl.Request]())
	t.Cleanup(queue.ShutDown)
	if err := r.watches.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	return r
}

// allows is an API server that grants each right that it is asked about.
type allows struct{ client.Writer }

// Create is client.Writer.
func (allows) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	if review, ok := o.(*authorizationv1.SelfSubjectAccessReview); ok {
		review.Status.Allowed = true
	}
	return nil
}

// passes reconciles until a pass writes nothing.
func (c *cluster) passes(t *testing.T) error {
	t.Helper()
	r := c.process(t)
	for range 10 {
		before := c.writes
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key("web")})
		if err != nil || c.fails > 0 && c.writes >= c.fails {
			return errors.Join(err, errKilled)
		}
		if c.writes == before {
			return nil
		}
	}
	return errors.New("it writes for ever")
}

// state is what a management cluster has in the end.
func (c *cluster) state(t *testing.T) []string {
	t.Helper()
	var out []string
	owners := func(o client.Object) (names []string) {
		for _, ref := range o.GetOwnerReferences() {
			names = append(names, ref.Kind+" "+ref.Name)
		}
		return names
	}
	var apps shipper.ApplicationList
	var kept shipper.ResourceSnapshotList
	var secrets corev1.SecretList
	if err := errors.Join(c.List(t.Context(), &apps), c.List(t.Context(), &kept), c.List(t.Context(), &secrets)); err != nil {
		t.Fatal(err)
	}
	for _, app := range apps.Items {
		out = append(out, fmt.Sprint("pin ", app.Spec.Template.Pins.Digest(), " ", takenOf(&app), " ", app.Status.Conditions))
	}
	for i := range kept.Items {
		out = append(out, fmt.Sprint("snapshot ", kept.Items[i].Name, " ", kept.Items[i].Spec.Data, " ", owners(&kept.Items[i])))
	}
	for i := range secrets.Items {
		out = append(out, fmt.Sprint("secret ", secrets.Items[i].Name, " ", secrets.Items[i].Type, " ", owners(&secrets.Items[i])))
	}
	slices.Sort(out)
	return out
}

// TestAKillAfterAnyWriteEndsInTheSameState takes content, makes its Release as the rollout reconciler does, and takes changed content.
func TestAKillAfterAnyWriteEndsInTheSameState(t *testing.T) {
	live := func(n int, lost bool) (state []string, writes int) {
		fails := n
		app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "web", UID: "app"}}
		app.Spec.Template.Resources = &shipper.Resources{Select: []shipper.ResourceSelector{{Kind: "ConfigMap"}, {Kind: "Secret", Name: "s"}}}
		changing := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "a"}, Data: map[string]string{"a": "1"}}
		c := newCluster(t, app, changing, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "s"}})
		settles := func() {
			t.Helper()
			c.fails, c.lost = fails, lost
			err := c.passes(t)
			killed := errors.Is(err, errKilled)
			if c.fails = 0; killed {
				fails = 0
				err = c.passes(t)
			}
			if err != nil {
				t.Fatalf("killed at %d: %v", n, err)
			}
		}
		settles()
		first := &shipper.Application{}
		rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "web-0", UID: "rel", Labels: map[string]string{
			shipper.AppLabel: "web",
		}}}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(app), first); err != nil {
			t.Fatal(err)
		}
		first.Spec.Template.DeepCopyInto(&rel.Spec.Environment)
		unseen := c.writes
		if err := c.Create(t.Context(), rel); err != nil {
			t.Fatal(err)
		}
		c.writes = unseen
		settles()
		changing.Data["a"] = "2"
		if err := c.Update(t.Context(), changing); err != nil {
			t.Fatal(err)
		}
		settles()
		return c.state(t), c.writes
	}
	want, writes := live(0, false)
	if writes < 9 || len(want) != 6 { // of 2 contents: a snapshot, a Secret and a pin; an owner; a condition
		t.Fatalf("undisturbed there are %d writes, and in the end\n%v", writes, want)
	}
	var owners []string
	for _, line := range want {
		if strings.HasPrefix(line, "snapshot ") {
			owners = append(owners, line[strings.LastIndex(line, "["):])
		}
	}
	slices.Sort(owners)
	if diff := cmp.Diff([]string{"[Application web]", "[Release web-0]"}, owners); diff != "" {
		t.Fatalf("undisturbed, the contents belong to others (-want +got):\n%s", diff)
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

// TestNothingIsKeptWhenNobodyJudgedTheRights has no webhook: the API server admits the pin that asks.
func TestNothingIsKeptWhenNobodyJudgedTheRights(t *testing.T) {
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "web", UID: "app"}}
	app.Spec.Template.Resources = &shipper.Resources{Select: []shipper.ResourceSelector{{Kind: "ConfigMap"}}}
	c := newCluster(t, app, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "a"}})
	c.unasked = true
	if err := c.passes(t); err != nil {
		t.Fatal(err)
	}
	got := c.state(t)
	if len(got) != 1 || !strings.HasPrefix(got[0], "pin  ") || !strings.Contains(got[0], shipper.SelectionNotAllowed) {
		t.Errorf("there is %q", got)
	}
}

// TestAProcessThatDiesAfterEachWriteGetsThere makes one write in each life.
func TestAProcessThatDiesAfterEachWriteGetsThere(t *testing.T) {
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "web", UID: "app"}}
	app.Spec.Template.Resources = &shipper.Resources{Select: []shipper.ResourceSelector{{Kind: "ConfigMap"}}}
	c := newCluster(t, app, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "a"}})
	for range 20 {
		c.writes, c.fails = 0, 1
		if err := c.passes(t); err == nil {
			return
		} else if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
	}
	t.Errorf("after 20 lives there is %q", c.state(t))
}
