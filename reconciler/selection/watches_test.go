// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/reconciler/retry"
)

var configMapsInWork = collection{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "work"}

// listRights is an API server that takes reviews. It fails the test if the watches hold their lock meanwhile.
type listRights struct {
	client.Writer
	t       *testing.T
	watches *watches
	// granted has the namespaces that may be listed.
	granted map[string]bool
	err     error
	// reviews are the namespaces that were asked for.
	reviews []string
}

// Create is client.Writer.
func (r *listRights) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	review, ok := o.(*authorizationv1.SelfSubjectAccessReview)
	if !ok {
		return errors.New("it is no review")
	}
	if !r.watches.mu.TryLock() {
		r.t.Error("a review is made while the lock is held")
	} else {
		r.watches.mu.Unlock()
	}
	namespace := review.Spec.ResourceAttributes.Namespace
	r.reviews = append(r.reviews, namespace)
	review.Status.Allowed = r.granted[namespace]
	return r.err
}

// watched are watches with an API server that refuses lists in the namespaces of forbidden.
func watched(t *testing.T, forbidden ...string) (*watches, *listRights) {
	t.Helper()
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api := fake.NewSimpleMetadataClient(scheme)
	api.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if !slices.Contains(forbidden, action.GetNamespace()) {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("no right"))
	})
	review := &listRights{t: t, granted: map[string]bool{}}
	w := newWatches(api, review, newChanges(clocktesting.NewFakeClock(time.Unix(1, 0))))
	review.watches = w
	queue := workqueue.NewTypedRateLimitingQueue(retry.Limiter[ctrl.Request]())
	t.Cleanup(queue.ShutDown)
	if err := w.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	return w, review
}

// namespaces are those of the running watches.
func (w *watches) namespaces() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for p := range maps.Keys(w.running) {
		out = append(out, p.namespace)
	}
	slices.Sort(out)
	return out
}

func TestAFailedReviewIsMadeAgain(t *testing.T) {
	w, review := watched(t)
	review.err = errors.New("away")
	list := []interest{{collection: configMapsInWork}}
	w.set(t.Context(), key("web"), list, answers{})
	if diff := cmp.Diff([]string{"work"}, w.namespaces()); diff != "" {
		t.Errorf("after an error (-want +got):\n%s", diff)
	}
	review.err, review.granted[""] = nil, true
	w.set(t.Context(), key("web"), list, answers{})
	if everywhere, known := w.everywhere[configMapsInWork.resource]; !everywhere || !known {
		t.Errorf("everywhere is %t, known is %t", everywhere, known)
	}
	if diff := cmp.Diff([]string{"", "work"}, w.namespaces()); diff != "" {
		t.Errorf("after a review (-want +got):\n%s", diff)
	}
}

func TestARefusedWatchIsReplaced(t *testing.T) {
	w, review := watched(t, metav1.NamespaceAll)
	review.granted[""] = true
	list := []interest{{collection: configMapsInWork}}
	w.set(t.Context(), key("web"), list, answers{})
	for n := 0; ; n++ { // until the refusal
		if _, changed := w.changes.take(key("web")); changed {
			break
		}
		if n > 200 {
			t.Fatal("the Application is not looked at again")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if got := w.namespaces(); len(got) != 0 {
		t.Errorf("watches of %q run", got)
	}
	review.granted = map[string]bool{"work": true}
	w.set(t.Context(), key("web"), list, answers{})
	if diff := cmp.Diff([]string{"work"}, w.namespaces()); diff != "" {
		t.Errorf("watches (-want +got):\n%s", diff)
	}
}

func TestUnreadablePlacesAreKeptAndAskedForOnce(t *testing.T) {
	w, review := watched(t)
	selector := labels.SelectorFromSet(labels.Set{"a": "b"})
	named := interest{collection: configMapsInWork, name: "x"}
	list := []interest{{collection: configMapsInWork}, {collection: configMapsInWork, labels: selector}, named}
	var known []int
	for range 3 { // as passes do when they cannot read
		asked := answers{}
		w.set(t.Context(), key("web"), append(slices.Clone(list), w.known(key("web"))...), asked)
		w.set(t.Context(), key("web"), append(slices.Clone(list), w.known(key("web"))...), asked)
		known = append(known, len(w.known(key("web"))))
	}
	if diff := cmp.Diff([]int{3, 3, 3}, known); diff != "" {
		t.Errorf("interests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"", "work", "work", "work"}, review.reviews); diff != "" {
		t.Errorf("reviews (-want +got):\n%s", diff)
	}
}
