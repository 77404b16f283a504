// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestEachApprovalSaysWhetherItCounts lets the API server refuse the first status of an Approval.
func TestEachApprovalSaysWhetherItCounts(t *testing.T) {
	run := runOf("first", started, func(run *shipper.SequenceRun) { run.Spec.Sequence = "sign" })
	resolves(run, snapshotOf(run))
	waits := after(-30)
	run.Status.Tasks = []shipper.TaskStatus{{
		Name: "approval", Ordinal: 1, State: shipper.TaskWaiting, EventID: "e", TriggerTime: &waits, Subject: shipyard.Subject(run),
	}}
	by := func(user string, seconds int, edits ...func(*shipper.Approval)) *shipper.Approval {
		a := &shipper.Approval{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: user, CreationTimestamp: after(seconds)},
			Spec: shipper.ApprovalSpec{
				Run: "first", Task: "approval", By: shipper.ApprovalUser{Username: user}, Decision: shipper.DecisionApprove,
			},
		}
		shipyard.StampApproval(a, run, noon)
		for _, edit := range edits {
			edit(a)
		}
		return a
	}
	ofEarlier := func(a *shipper.Approval) { a.OwnerReferences[0].UID = "earlier" }
	refuse := true
	r := newReconciler(t, interceptor.Funcs{SubResourcePatch: func(
		ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
	) error {
		if _, is := o.(*shipper.Approval); is && refuse {
			refuse = false
			return errors.New("no answer")
		}
		return c.SubResource(sub).Patch(ctx, o, patch, opts...)
	}}, theShipyard(), run, by("bob", -10), by("cay", -20), by("dan", -40), by("eve", -5, ofEarlier), by("ann", -25))
	for range 2 {
		_, _ = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(run)})
	}
	var all shipper.ApprovalList
	if err := r.client.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range all.Items {
		is := shipper.FindCondition(a.Status.Conditions, shipper.ApprovalCounted)
		if is == nil {
			t.Fatalf("%s has no condition", a.Name)
		}
		bound := a.Status.Subject == shipyard.Subject(run)
		got = append(got, fmt.Sprintf("%s %s %t %s %s", a.Name, a.Status.EventID, bound, is.Status, is.Message))
	}
	slices.Sort(got)
	want := []string{
		`ann  false False user "ann" has asked for run first: another user has to approve it`,
		"bob e true True ",
		"cay e true True ",
		`dan  false False spec.task: Invalid value: "approval": it was created before task approval of run first waited, at ` +
			"2026-03-01T11:59:30Z: delete it, and create another",
		"eve  false False metadata: Forbidden: labels or owner are not those of run first: leave them out",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	now, err := r.named(t.Context(), "shop", "first")
	if err != nil {
		t.Fatal(err)
	}
	var counted []string
	for _, one := range now.Status.Tasks[0].Approvals {
		counted = append(counted, one.By)
	}
	if diff := cmp.Diff([]string{"cay", "bob"}, counted); diff != "" || !shipyard.IsFinished(now) {
		t.Errorf("the run counted (-want +got):\n%s%+v", diff, now.Status)
	}
}

// Two users may decide in one second, and the first decision may end the wait.
func TestApprovalsOfOneSecondAreOrderedAsTheyWereCreated(t *testing.T) {
	of := func(name, version string, conditions ...shipper.Condition) *shipper.Approval {
		a := &shipper.Approval{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, ResourceVersion: version, CreationTimestamp: after(0),
		}}
		a.Spec.Run, a.Status.Conditions = "first", conditions
		return a
	}
	r := newReconciler(t, interceptor.Funcs{}, of("z", "8"), of("a", "9"),
		of("judged", "12", shipper.Condition{Type: shipper.ApprovalCounted, Status: "True"}))
	all, err := r.approvals(t.Context(), runOf("first"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range all {
		got = append(got, all[i].Name)
	}
	if diff := cmp.Diff([]string{"judged", "z", "a"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
