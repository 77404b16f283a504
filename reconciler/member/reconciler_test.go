// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/member/capacity"
	"shipper.dev/shipper/reconciler/member/inplace"
	"shipper.dev/shipper/reconciler/member/installation"
	"shipper.dev/shipper/reconciler/member/targetstatus"
	"shipper.dev/shipper/reconciler/queue"
	"shipper.dev/shipper/reconciler/retry"
)

// fixture is a reconciler of an Application, web, in a cluster that no Cluster object names any more. Its targets were deleted, so the API
// server is asked for their Releases; when that says that they are gone, the cluster is given up.
type fixture struct {
	*testing.T
	*Reconciler
	key Key

	mu sync.Mutex
	// asked are the Releases that the API server was asked for, and answers what it says of some before it says that they are gone.
	asked   []string
	answers map[string]func() error
}

func begin(t *testing.T, targets ...string) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := shipper.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects := fake.NewClientBuilder().WithScheme(scheme)
	for i, name := range targets {
		objects.WithObjects(&shipper.InstallationTarget{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "team", Name: name, UID: types.UID(name), Labels: map[string]string{shipper.AppLabel: "web"},
				CreationTimestamp: metav1.Unix(int64(i), 0), DeletionTimestamp: &metav1.Time{Time: time.Unix(100, 0)},
				Finalizers:      []string{shipper.InstallationFinalizer},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: shipper.GroupVersion.String(), Kind: "Release", Name: name, UID: "gone"}},
			},
			Spec: shipper.InstallationTargetSpec{Clusters: []string{"eu"}},
		})
	}
	f := &fixture{T: t, key: Key{Cluster: "eu", Namespace: "team", App: "web"}, answers: map[string]func() error{}}
	cached := objects.Build()
	live := interceptor.NewClient(cached, interceptor.Funcs{Get: f.get})
	clusters := fleet.New(fleet.Options{Reader: cached, Clock: clock.RealClock{}})
	f.Reconciler = &Reconciler{
		client: cached, clock: clock.RealClock{}, recorder: events.NewFakeRecorder(100),
		queues: &queues{clock: clock.RealClock{}, all: map[string]priorityqueue.PriorityQueue[Key]{}, options: queue.Options[Key]{
			Namespace: func(k Key) string { return k.Namespace }, Workers: 1,
		}},
		retries:      retry.NewRetrier(retry.ClusterLimiter[work]()),
		installation: installation.NewWorker(installation.Options{Client: cached, Live: live, Fleet: clusters, Clock: clock.RealClock{}}),
		installed:    targetstatus.NewResults[installation.Outcome](),
	}
	return f
}

// get is what the API server says.
func (f *fixture) get(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	f.mu.Lock()
	f.asked = append(f.asked, key.Name)
	answer := f.answers[key.Name]
	f.mu.Unlock()
	if answer != nil {
		if err := answer(); err != nil {
			return err
		}
	}
	return c.Get(ctx, key, o, opts...)
}

// mark has targets worked on in the next pass.
func (f *fixture) mark(targets ...string) {
	for _, name := range targets {
		f.queues.due.mark(work{f.key, name}, time.Now())
	}
}

// pass makes a pass, and returns the Releases that the API server was asked for.
func (f *fixture) pass() (ctrl.Result, []string, error) {
	f.asked = nil
	out, err := f.Reconcile(f.Context(), f.key)
	slices.Sort(f.asked)
	return out, f.asked, err
}

// reported are the targets of which there is an outcome.
func (f *fixture) reported() []string {
	f.Helper()
	var all shipper.InstallationTargetList
	f.must(f.client.List(f.Context(), &all))
	var out []string
	for i := range all.Items {
		if len(f.installed.Of(&all.Items[i])) > 0 {
			out = append(out, all.Items[i].Name)
		}
	}
	return out
}

func (f *fixture) same(what string, want, got any) {
	f.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("%s: -want +got:\n%s", what, diff)
	}
}

// conflicting is what an API server says of an object that another writer changed.
func conflicting() error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "releases"}, "x", nil)
}

func TestASlowTargetDoesNotHoldItsSiblings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := begin(t, "web-0", "web-1", "web-2")
		late := make(chan struct{})
		f.answers["web-2"] = func() error { <-late; return nil }
		f.mark("web-0", "web-1", "web-2")
		ended := make(chan ctrl.Result, 1)
		go func() {
			out, _, err := f.pass()
			f.same("error", nil, err)
			ended <- out
		}()
		synctest.Wait()
		f.same("reported while one waits", []string{"web-0", "web-1"}, f.reported())
		f.mark("web-0") // an event, meanwhile
		close(late)
		f.same("the pass after it", ctrl.Result{RequeueAfter: time.Millisecond}, <-ended)
		f.same("reported", []string{"web-0", "web-1", "web-2"}, f.reported())
	})
}

// TestATargetHasRetriesOfItsOwn: what one target meets neither delays another, nor has it worked on before its time, nor is in its status.
func TestATargetHasRetriesOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := begin(t, "web-0", "web-1")
		f.answers["web-0"] = conflicting
		f.mark("web-0", "web-1")
		out, asked, err := f.pass()
		f.same("the first pass", []any{100 * time.Millisecond, []string{"web-0", "web-1"}, nil}, []any{out.RequeueAfter, asked, err})
		f.same("reported: a conflict is not", []string{"web-1"}, f.reported())

		f.answers["web-1"] = func() error { return apierrors.NewInternalError(fmt.Errorf("x")) }
		f.installation.Forget(types.NamespacedName{Namespace: "team", Name: "web-1"}) // its Release is asked for again
		f.mark("web-1")
		out, asked, _ = f.pass()
		f.same("an event of the other", []any{100 * time.Millisecond, []string{"web-1"}}, []any{out.RequeueAfter, asked})
		for _, want := range []time.Duration{200, 400, 800, 1600} {
			time.Sleep(out.RequeueAfter)
			out, asked, _ = f.pass()
			f.same("a retry of both", []any{want * time.Millisecond, []string{"web-0", "web-1"}}, []any{out.RequeueAfter, asked})
		}
		f.same("reported after five conflicts", []string{"web-1"}, f.reported())
		time.Sleep(out.RequeueAfter)
		f.pass()
		f.same("reported after six", []string{"web-0", "web-1"}, f.reported())
	})
}

func TestAPanicIsAnErrorAndTheTargetStaysDue(t *testing.T) {
	f := begin(t, "web-0", "web-1")
	f.answers["web-0"] = func() error { panic("x") }
	f.mark("web-0", "web-1")
	if _, _, err := f.pass(); err == nil {
		t.Error("no error")
	}
	f.same("reported", []string{"web-1"}, f.reported())
	f.answers["web-0"] = nil
	out, asked, err := f.pass()
	f.same("the next pass", []any{ctrl.Result{}, []string{"web-0"}, nil}, []any{out, asked, err})
	f.same("reported", []string{"web-0", "web-1"}, f.reported())
}

// TestATargetOfAnotherKeyIsNotWorkedOn: its label may have changed while it was due, and the other Key has a worker of its own.
func TestATargetOfAnotherKeyIsNotWorkedOn(t *testing.T) {
	f := begin(t, "web-0")
	f.key.App = "other"
	f.mark("web-0", "gone")
	out, asked, err := f.pass()
	f.same("the pass", []any{ctrl.Result{}, []string(nil), nil}, []any{out, asked, err})
}

// TestTargetsWithResourcesAreWorkedOnTogether: an event of one may make another the one that writes. Retries are of each all the same, and
// end with the target.
func TestTargetsWithResourcesAreWorkedOnTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := begin(t, "web-0", "web-1")
		defer f.queues.end()
		var all shipper.InstallationTargetList
		f.must(f.client.List(t.Context(), &all))
		for i := range all.Items {
			all.Items[i].Spec.Resources = &shipper.TargetResources{}
			f.must(f.client.Update(t.Context(), &all.Items[i]))
		}
		f.answers["web-0"] = conflicting
		f.installationChanged(t.Context(), change{after: &all.Items[1]})
		out, asked, err := f.pass()
		f.same("an event of one", []any{100 * time.Millisecond, []string{"web-0", "web-1"}, nil}, []any{out.RequeueAfter, asked, err})
		f.same("reported: a conflict is not", []string{"web-1"}, f.reported())
		time.Sleep(out.RequeueAfter)
		out, asked, _ = f.pass()
		f.same("a retry", []any{200 * time.Millisecond, []string{"web-0"}}, []any{out.RequeueAfter, asked})

		all.Items[0].Finalizers = nil
		f.must(f.client.Update(t.Context(), &all.Items[0]))
		f.installationChanged(t.Context(), change{before: &all.Items[0]})
		out, asked, err = f.pass()
		f.same("it is gone", []any{ctrl.Result{}, []string(nil), nil}, []any{out, asked, err})
		if again := f.retries.Again(work{f.key, "web-0"}).RequeueAfter; again != 100*time.Millisecond {
			t.Errorf("its retries are remembered: the next is in %s", again)
		}
	})
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// TestATargetWithoutAnApplicationIsWorkedOn: a user may have removed the label.
func TestATargetWithoutAnApplicationIsWorkedOn(t *testing.T) {
	f := begin(t, "web-0", "web-1", "web-2")
	var all shipper.InstallationTargetList
	f.must(f.client.List(t.Context(), &all))
	keys := map[Key]bool{}
	for i := range all.Items {
		it := &all.Items[i]
		if it.Labels = nil; i > 0 { // these share an anchor
			it.Spec.Resources = &shipper.TargetResources{}
		}
		f.must(f.client.Update(t.Context(), it))
		f.installationChanged(t.Context(), change{after: it})
		keys[keyOf(it, "eu").Key] = true
	}
	f.same("keys", map[Key]bool{{Cluster: "eu", Namespace: "team", App: "web-0"}: true, {Cluster: "eu", Namespace: "team"}: true}, keys)
	for f.key = range keys {
		if _, _, err := f.pass(); err != nil {
			t.Error(err)
		}
	}
	f.same("reported", []string{"web-0", "web-1", "web-2"}, f.reported())
	f.queues.end()
}

// TestAReleaseThatCannotBeReadLeavesUnknownWhichLackPods: a Release that is left out would count as one that lacks none.
func TestAReleaseThatCannotBeReadLeavesUnknownWhichLackPods(t *testing.T) {
	for sentence, tc := range map[string]struct {
		// fails reports whether a read of an object fails.
		fails func(o client.Object, name string) bool
		want  bool
	}{
		"all are read":          {func(client.Object, string) bool { return false }, false},
		"a Release of a target": {func(o client.Object, name string) bool { return isRelease(o) && name == "web-1" }, true},
		"an InstallationTarget, for objects in place": {func(o client.Object, _ string) bool { return !isRelease(o) }, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := begin(t, "web-0", "web-1")
			for _, name := range []string{"web-0", "web-1"} {
				rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)}}
				ct := &shipper.CapacityTarget{
					ObjectMeta: metav1.ObjectMeta{
						Namespace: "team", Name: name, Labels: map[string]string{shipper.AppLabel: "web", shipper.ReleaseLabel: name},
						OwnerReferences: []metav1.OwnerReference{{
							APIVersion: shipper.GroupVersion.String(), Kind: "Release", Name: name, UID: types.UID(name),
						}},
					},
					Spec: shipper.CapacityTargetSpec{Clusters: []shipper.ClusterCapacityTarget{{Name: "eu", Percent: 50, TotalReplicaCount: 4}}},
				}
				f.must(f.client.Create(t.Context(), rel))
				f.must(f.client.Create(t.Context(), ct))
			}
			cached, ok := f.client.(client.WithWatch)
			if !ok {
				t.Fatalf("%T does not watch", f.client)
			}
			f.client = interceptor.NewClient(cached, interceptor.Funcs{Get: func(
				ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
			) error {
				if tc.fails(o, key.Name) {
					return apierrors.NewInternalError(fmt.Errorf("x"))
				}
				return c.Get(ctx, key, o, opts...)
			}})
			clusters := fleet.New(fleet.Options{Reader: f.client, Clock: clock.RealClock{}})
			f.capacity, f.inplace = capacity.NewWorker(clusters), inplace.NewWorker(f.client, clusters, nil, clock.RealClock{})
			_, found, err := f.observePods(t.Context(), work{Key: f.key}, types.NamespacedName{Namespace: "team", Name: "web"})
			f.same("unknown, and an error", []bool{tc.want, tc.want}, []bool{found.Unknown, err != nil})
		})
	}
}

// isRelease reports whether an object is one.
func isRelease(o client.Object) bool {
	_, is := o.(*shipper.Release)
	return is
}
