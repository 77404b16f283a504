// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Whoever may write ControllerRevisions changes nothing that runs do.
func TestARevisionIsBoundByItsDigest(t *testing.T) {
	yard, run := theShipyard(), runOf("first")
	run.Status.Resolved.Revision = shipyard.RevisionOf(yard)
	forged := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: run.Status.Resolved.Revision.Name}}
	forged.Data.Raw = []byte(`{"serviceAccountName":"admin","stages":[]}`)
	r := newReconciler(t, interceptor.Funcs{}, forged)
	r.revisions = newRevisions(r.client)
	if got, err := r.revisions.of(t.Context(), run); got != nil || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	err := r.revisions.save(t.Context(), yard, shipyard.Snapshot(yard))
	want := "ControllerRevision shop/" + forged.Name + " is not a revision of Shipyard yard: delete it"
	if diff := cmp.Diff(want, message(err)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRevisionsGoWithTheLastOfTheirRuns(t *testing.T) {
	old := func(name string) *shipper.SequenceRun {
		return runOf(name, func(run *shipper.SequenceRun) { run.Status.Resolved.Revision.Name = "yard-old" })
	}
	yard := theShipyard()
	current := runOf("current", func(run *shipper.SequenceRun) { run.Status.Resolved.Revision = shipyard.RevisionOf(yard) })
	for sentence, tc := range map[string]struct {
		deleted, others []*shipper.SequenceRun
		want            []string
	}{
		"no run has it any more":       {[]*shipper.SequenceRun{old("a"), old("b")}, []*shipper.SequenceRun{current}, []string{"yard-old"}},
		"another run has it":           {[]*shipper.SequenceRun{old("a")}, []*shipper.SequenceRun{old("b")}, nil},
		"it is that of the Shipyard":   {[]*shipper.SequenceRun{current}, nil, nil},
		"another run may come to have": {[]*shipper.SequenceRun{old("a")}, []*shipper.SequenceRun{runOf("b", unresolved)}, nil},
		"the run was refused":          {[]*shipper.SequenceRun{runOf("a", unresolved)}, nil, nil},
	} {
		var got []string
		r := newReconciler(t, interceptor.Funcs{Delete: func(
			_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.DeleteOption,
		) error {
			got = append(got, obj.GetName())
			return nil
		}})
		if err := r.revisions.remove(t.Context(), yard, tc.deleted, tc.others); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", sentence, diff)
		}
	}
}
