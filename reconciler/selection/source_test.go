// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"errors"
	"slices"
	"strconv"
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
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/reconciler/retry"
)

// cluster is a management cluster with a Source.
type cluster struct {
	client.WithWatch
	source *Source
	clock  *clocktesting.FakeClock
	// denied are the users without rights. asked are those that were asked about, and how often objects were listed.
	denied []string
	asked  []string
	lists  int
	// woken are the Applications for which the Source has requested passes since they waited.
	woken []types.NamespacedName
	// down is the error of all reviews and lists.
	down error
}

// review answers a review; Shipper itself may list everything.
func (c *cluster) review(o client.Object) error {
	switch o := o.(type) {
	case *authorizationv1.SelfSubjectAccessReview:
		o.Status.Allowed = true
	case *authorizationv1.SubjectAccessReview:
		what := o.Spec.ResourceAttributes
		c.asked = append(c.asked, strings.Join([]string{o.Spec.User, what.Verb, what.Resource, what.Namespace + "/" + what.Name}, " "))
		o.Status.Allowed = !slices.Contains(c.denied, o.Spec.User)
		return c.down
	}
	return nil
}

func newCluster(t *testing.T, there ...client.Object) *cluster {
	t.Helper()
	scheme, small := runtime.NewScheme(), fake.NewTestScheme()
	err := errors.Join(shipper.AddToScheme(scheme), corev1.AddToScheme(scheme), authorizationv1.AddToScheme(scheme),
		metav1.AddMetaToScheme(small))
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	c := &cluster{clock: clocktesting.NewFakeClock(time.Unix(1, 0))}
	c.WithWatch = clientfake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(there...).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, to client.WithWatch, o client.Object, options ...client.CreateOption) error {
				if isReview(o) {
					return c.review(o)
				}
				return to.Create(ctx, o, options...)
			},
			List: func(ctx context.Context, to client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				c.lists++
				return errors.Join(c.down, to.List(ctx, list, options...))
			},
		}).Build()
	lag, err := newLag(nil)
	if err != nil {
		t.Fatal(err)
	}
	changed := newChanges(c.clock)
	c.source = &Source{
		slots:  newSlots(maxPasses, c.clock, func(apps []types.NamespacedName) { c.woken = append(c.woken, apps...) }),
		reader: newReader(c, mapper, nil, objects.Policy{}), rights: &asker{c}, clock: c.clock, lag: lag, changes: changed,
		watches: newWatches(fake.NewSimpleMetadataClient(small), c, changed), known: map[types.NamespacedName]known{},
	}
	queue := workqueue.NewTypedRateLimitingQueue(retry.Limiter[ctrl.Request]())
	t.Cleanup(queue.ShutDown)
	if err := c.source.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	return c
}

func isReview(o client.Object) bool {
	switch o.(type) {
	case *authorizationv1.SelfSubjectAccessReview, *authorizationv1.SubjectAccessReview:
		return true
	}
	return false
}

// web selects all ConfigMaps of its namespace, as ann has chosen.
func web() *shipper.Application {
	app := selecting(shipper.ResourceSelector{Kind: "ConfigMap"})
	app.UID = "app"
	app.Annotations = map[string]string{shipper.AppSelectedByAnnotation: `{"username":"ann"}`}
	return app
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: name}, Data: map[string]string{"a": value}}
}

func TestContentIsReadOnceForEachChange(t *testing.T) {
	c, app := newCluster(t, configMap("a", "1")), web()
	observe := func() (*Content, time.Duration) {
		t.Helper()
		out, again, err := c.source.Observe(t.Context(), app, false)
		if err != nil {
			t.Fatal(err)
		}
		return out, again
	}
	first, _ := observe()
	again, _ := observe()
	if !first.IsNew() || again.IsNew() || first.Digest != again.Digest || first.Objects != 1 || c.lists != 1 {
		t.Fatalf("read %d times: %+v, %+v", c.lists, first, again)
	}
	if err := c.Create(t.Context(), configMap("b", "1")); err != nil {
		t.Fatal(err)
	}
	c.source.Changed(key("web"))
	if now, wait := observe(); now != nil || wait != quietPeriod {
		t.Fatalf("while objects change there is %+v, and again after %s", now, wait)
	}
	if now, _, err := c.source.Observe(t.Context(), app, true); err != nil || now.Digest == first.Digest {
		t.Fatalf("when it is urgent there is %+v, %v", now, err)
	}
	lists := c.lists
	for _, change := range []func(){
		func() { app.UID = "another" },
		func() { app.Annotations[shipper.AppResourcesRefreshAnnotation] = "1" },
		func() { app.Annotations[shipper.AppSelectedByAnnotation] = `{"username":"bob"}` },
		func() { app.Spec.Template.Resources.Select[0].Name = "a" },
		func() { c.source.Forget(t.Context(), key("web")) },
	} {
		change()
		if now, _ := observe(); !now.IsNew() {
			t.Errorf("it is not read again: %+v", now)
		}
	}
	if c.lists != lists+3 { // the last two read one object by its name
		t.Errorf("%d lists after %d", c.lists, lists)
	}
	app.Spec.Template.Resources.Follow = shipper.FollowOnRefresh // nothing is watched: each template is read
	observe()
	app.Spec.Template.Strategy = &shipper.RolloutStrategy{OnFailure: shipper.OnFailureAbort}
	if now, _ := observe(); !now.IsNew() {
		t.Error("with OnRefresh an edit reads nothing")
	}
}

// The API server is asked before anything is read: what the user may not place must not be kept where that user can read it.
func TestNothingIsReadWithoutTheRightsOfWhoChose(t *testing.T) {
	for sentence, tc := range map[string]struct {
		by, message string
		again       time.Duration
		asked       []string
	}{
		"the user lost the right": {`{"username":"ann"}`, "spec.template.resources.select[0]: " +
			`user "ann", who chose the resources of Application work/web, may not list all configmaps in namespace work, and only what its author ` +
			"may read is placed; kubectl -n work create role list-configmaps --verb=list --resource=configmaps; kubectl -n work create " +
			"rolebinding list-configmaps-ann --role=list-configmaps --user=ann; or set annotation shipper.booking.com/app.resources.refresh to a " +
			"new value as a user who has the right. What is placed stays", recheck, []string{"ann list configmaps work/"}},
		"nobody is recorded": {"", "annotation shipper.booking.com/app.selected-by names no user whose rights the content could be taken " +
			"with: set annotation shipper.booking.com/app.resources.refresh to a new value. What is placed stays", 0, nil},
		"the record is none": {"ann", "annotation shipper.booking.com/app.selected-by names no user whose rights the content could be taken " +
			"with: set annotation shipper.booking.com/app.resources.refresh to a new value. What is placed stays", 0, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			c, app := newCluster(t, configMap("a", "1")), web()
			c.denied = []string{"ann"}
			app.Annotations[shipper.AppSelectedByAnnotation] = tc.by
			for range 2 { // the second time it is remembered
				out, again, err := c.source.Observe(t.Context(), app, false)
				p, ok := errors.AsType[*Problem](err)
				if !ok || out != nil || again != tc.again || p.Reason != shipper.SelectionNotAllowed || p.Passing() {
					t.Fatalf("%+v, %s, %v", out, again, err)
				}
				if diff := cmp.Diff(tc.message, p.Message); diff != "" {
					t.Errorf("message (-want +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(tc.asked, c.asked); diff != "" || c.lists > 0 {
				t.Errorf("%d lists; asked (-want +got):\n%s", c.lists, diff)
			}
			c.denied = nil
			c.clock.Step(tc.again)
			out, _, err := c.source.Observe(t.Context(), app, false)
			if granted := tc.again > 0; granted != (err == nil) || granted && !out.IsNew() {
				t.Errorf("after the right was granted there is %+v, %v", out, err)
			}
		})
	}
}

func TestAFailedPassLeavesNothingToCompareWith(t *testing.T) {
	c, app := newCluster(t, configMap("a", "1")), web()
	first, _, err := c.source.Observe(t.Context(), app, false)
	if err != nil {
		t.Fatal(err)
	}
	c.down = errors.New("no answer")
	app.Annotations[shipper.AppResourcesRefreshAnnotation] = "x"
	for range 2 {
		_, _, err := c.source.Observe(t.Context(), app, false)
		if p, ok := errors.AsType[*Problem](err); !ok || p.Reason != shipper.SelectionNotReadable || !p.Passing() {
			t.Fatalf("without an answer it is %v", err)
		}
	}
	c.down = nil
	delete(app.Annotations, shipper.AppResourcesRefreshAnnotation)
	if again, _, err := c.source.Observe(t.Context(), app, false); err != nil || !again.IsNew() || again.Digest != first.Digest {
		t.Errorf("then there is %+v, %v", again, err)
	}
}

func TestPartsThatAreNotInMemoryAreReadAgain(t *testing.T) {
	c, app := newCluster(t, configMap("a", "1")), web()
	for range 2 {
		content, _, err := c.source.Observe(t.Context(), app, false)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := c.source.Parts(t.Context(), app, content)
		if err != nil || len(parts) != 1 || parts[0].Digest != content.Digest {
			t.Fatalf("%d parts, %v", len(parts), err)
		}
	}
	content, _, err := c.source.Observe(t.Context(), app, false)
	if err := errors.Join(err, c.Create(t.Context(), configMap("b", "1"))); err != nil {
		t.Fatal(err)
	}
	if _, err := c.source.Parts(t.Context(), app, content); !apierrors.IsConflict(err) {
		t.Errorf("parts of other content are %v", err)
	}
}

// A server that does not answer for a kind must not take all workers of rollouts.
func TestPassesThatReadDoNotKeepOthersWaiting(t *testing.T) {
	c, app := newCluster(t, configMap("a", "1")), web()
	next := types.NamespacedName{Namespace: "work", Name: "next"}
	var ends []func()
	for i := range maxPasses {
		end, ok := c.source.slots.acquire(types.NamespacedName{Namespace: strconv.Itoa(i), Name: "reads"})
		if !ok {
			t.Fatal("there is no slot")
		}
		ends = append(ends, end)
	}
	key := client.ObjectKeyFromObject(app)
	c.source.changes.add(key) // a change is not lost meanwhile
	for range 2 {             // another pass does not change the order
		if out, again, err := c.source.Observe(t.Context(), app, true); out != nil || again != busyDelay || err != nil || len(c.asked) > 0 {
			t.Fatalf("while others read there is %+v, %s, %v", out, again, err)
		}
		if _, ok := c.source.slots.acquire(next); ok {
			t.Fatal("there is a slot")
		}
	}
	ends[0]()
	if diff := cmp.Diff([]types.NamespacedName{key}, c.woken); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
	c.woken = nil
	if out, _, err := c.source.Observe(t.Context(), app, true); err != nil || !out.IsNew() || out.first.IsZero() {
		t.Errorf("then there is %+v, %v", out, err)
	}
	ends[1]()
	if diff := cmp.Diff([]types.NamespacedName{next, next}, c.woken); diff != "" {
		t.Errorf("woken when both have read (-want +got):\n%s", diff)
	}
	c.woken = nil
	if c.source.Forget(t.Context(), next); len(c.woken) > 0 || c.source.slots.free != maxPasses {
		t.Errorf("%v are woken when none waits; %d slots are free", c.woken, c.source.slots.free)
	}
}

// An Application that is deleted while it waits must not keep those behind it waiting.
func TestAnApplicationThatLeavesWakesTheNext(t *testing.T) {
	var woken []types.NamespacedName
	s := newSlots(1, clocktesting.NewFakePassiveClock(time.Now()), func(apps []types.NamespacedName) { woken = append(woken, apps...) })
	name := func(name string) types.NamespacedName { return types.NamespacedName{Name: name} }
	end, _ := s.acquire(name("reads"))
	s.acquire(name("leaves"))
	s.acquire(name("waits"))
	end()
	s.leave(name("leaves"))
	if diff := cmp.Diff([]types.NamespacedName{name("leaves"), name("waits")}, woken); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
}
