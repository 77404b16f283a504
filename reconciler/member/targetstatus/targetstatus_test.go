// SPDX-License-Identifier: Apache-2.0

package targetstatus

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/retry"
)

// numbers reports results, which are numbers, as observedGeneration.
type numbers struct{ ended bool }

func (numbers) Clusters(*shipper.CapacityTarget) []string { return []string{"west"} }

func (k numbers) Prepare(context.Context, *shipper.CapacityTarget) (bool, error) { return k.ended, nil }

func (numbers) Report(ct *shipper.CapacityTarget, results map[string]int64, _ time.Time) (bool, time.Duration) {
	ct.Status.ObservedGeneration = results["west"]
	return true, 0
}

func (numbers) Events(context.Context, *shipper.CapacityTarget, *shipper.CapacityTarget) []Events {
	return nil
}

func (numbers) Finish(context.Context, *shipper.CapacityTarget, map[string]int64) (bool, error) {
	return false, nil
}

func (numbers) Forget(types.NamespacedName) {}

// TestConflictsAreForgotten is about conflicts of status writes, and the pass after them.
func TestConflictsAreForgotten(t *testing.T) {
	ct := &shipper.CapacityTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0", UID: "1", Generation: 7}}
	scheme := runtime.NewScheme()
	if err := shipper.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for sentence, tc := range map[string]struct {
		objects        []client.Object
		ended, results bool
	}{
		"the status is written":           {objects: []client.Object{ct}, results: true},
		"there are no results any more":   {objects: []client.Object{ct}},
		"the target's Release has ended":  {objects: []client.Object{ct}, ended: true},
		"the target is gone":              {},
		"it is gone, and has results yet": {results: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.objects...).WithStatusSubresource(tc.objects...).Build()
			r := &Reconciler[*shipper.CapacityTarget, int64]{
				Options: Options[*shipper.CapacityTarget, int64]{
					New:  func() *shipper.CapacityTarget { return &shipper.CapacityTarget{} },
					Kind: numbers{tc.ended}, Results: NewResults[int64](), Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)),
				},
				client: c, recorder: events.NewFakeRecorder(1), throttle: report.NewThrottle(),
				retries: retry.NewRetrier(retry.ClusterLimiter[ctrl.Request]()),
			}
			if tc.results {
				r.Results.Put(ct, "west", 7)
			}
			req := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(ct)}
			for range 3 {
				r.retries.Again(req)
			}
			if got, err := r.Reconcile(t.Context(), req); err != nil || !got.IsZero() {
				t.Errorf("the pass returns %v, %v", got, err)
			}
			if got := r.retries.Again(req).RequeueAfter; got != 100*time.Millisecond {
				t.Errorf("the next conflict is retried after %s", got)
			}
		})
	}
}
