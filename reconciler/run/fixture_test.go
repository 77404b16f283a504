// SPDX-License-Identifier: Apache-2.0

package run

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/keymutex"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/retry"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func after(seconds int) metav1.Time {
	return metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second))
}

// newReconciler is a reconciler at noon, whose cache and API server have the same objects. funcs replace what the API server does.
func newReconciler(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *Reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := shipper.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&shipper.SequenceRun{}).WithObjects(objects...).
		WithIndex(&shipper.Approval{}, approvalsOf, runOfApproval).WithInterceptorFuncs(funcs)
	for field, keys := range shipyardIndexes() {
		builder.WithIndex(&shipper.SequenceRun{}, field, keys)
	}
	c := builder.Build()
	return &Reconciler{
		client: c, live: c, clock: testclock.NewFakePassiveClock(noon), recorder: events.NewFakeRecorder(100),
		retrier: retry.NewRetrier(retry.Limiter[ctrl.Request]()), deciding: keymutex.NewHashed(1),
	}
}

// theShipyard has the stages staging and production; the end of delivery in staging triggers delivery in production.
func theShipyard() *shipper.Shipyard {
	tasks := func(names ...string) []shipper.Task {
		out := make([]shipper.Task, len(names))
		for i, name := range names {
			out[i].Name = name
		}
		return out
	}
	return &shipper.Shipyard{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "yard", UID: "yard-uid", Generation: 2},
		Spec: shipper.ShipyardSpec{Stages: []shipper.Stage{
			{Name: "staging", Sequences: []shipper.Sequence{
				{Name: "delivery", Tasks: tasks("approval", "deployment")}, {Name: "sign", Tasks: tasks("approval")},
			}},
			{Name: "production", Sequences: []shipper.Sequence{{
				Name: "delivery", Tasks: tasks("approval", "deployment"), TriggeredOn: []shipper.Trigger{{Event: "staging.delivery.finished"}},
			}}},
		}},
	}
}

// runOf is a run that ann requested, as the webhook writes it.
func runOf(name string, edits ...func(*shipper.SequenceRun)) *shipper.SequenceRun {
	run := &shipper.SequenceRun{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(name + "-uid"), Generation: 1, CreationTimestamp: after(-3600),
		},
		Spec: shipper.SequenceRunSpec{
			Shipyard: "yard", Stage: "staging", Sequence: "delivery", Service: "web", Context: "context",
			Data:        shipper.FreeForm{"weight": int64(5)},
			RequestedBy: shipper.ApprovalUser{Username: "ann"}, Version: shipper.RunVersion{Name: "web", Version: "1.2.3", Digest: "d"},
			Snapshot: shipyard.Snapshot(theShipyard()),
		},
	}
	for _, edit := range edits {
		edit(run)
	}
	return run
}

// started lets a run begin a minute before noon.
func started(run *shipper.SequenceRun) {
	at := after(-60)
	run.Status.StartTime = &at
}

// ended lets a run end at noon with a result, and list what it triggers.
func ended(result shipper.Result) func(*shipper.SequenceRun) {
	return func(run *shipper.SequenceRun) {
		at := after(0)
		started(run)
		run.Status.Result, run.Status.Completion, run.Status.FinishTime = result, shipper.CompletionSucceeded, &at
		run.Status.Data = shipper.FreeForm{"weight": int64(6)}
		run.Status.Conditions = []shipper.Condition{{Type: shipper.RunFinished, Status: "True", LastTransitionTime: at}}
		run.Status.Triggered = shipyard.FollowUps(run)
	}
}

// message is that of an error; empty for nil.
func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
