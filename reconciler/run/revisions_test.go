// SPDX-License-Identifier: Apache-2.0

package run

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Runs do nothing that somebody else has written into a ControllerRevision.
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

// storedRevision is a ControllerRevision of a Shipyard.
func storedRevision(name string, owner *shipper.Shipyard) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, Labels: map[string]string{shipper.ShipyardLabel: "yard"},
		OwnerReferences: shipyard.Owners(owner.Name, owner.UID),
	}}
}

// A user may have deleted the last run of a revision: the revision goes when the Shipyard gets another one.
func TestRevisionsWithoutRunsGoWithTheNextRevision(t *testing.T) {
	of := func(revision string) func(*shipper.SequenceRun) {
		return func(run *shipper.SequenceRun) { run.Status.Resolved.Revision.Name = revision }
	}
	another := func(run *shipper.SequenceRun) { run.Spec.Service = "api" }
	yard, theirs := theShipyard(), theShipyard()
	theirs.UID = "another"
	next := shipyard.RevisionOf(yard).Name
	for sentence, tc := range map[string]struct {
		runs []client.Object
		want []string
	}{
		"no run has it":                {nil, []string{"theirs", next}},
		"runs have another one":        {[]client.Object{runOf("a", of("x"), ended(shipper.ResultPass))}, []string{"theirs", next}},
		"a run has it":                 {[]client.Object{runOf("a", of("old"), ended(shipper.ResultPass))}, []string{"old", "theirs", next}},
		"a run may come to have it":    {[]client.Object{runOf("a", unresolved, another)}, []string{"old", "theirs", next}},
		"a run was refused without it": {[]client.Object{runOf("a", ended(shipper.ResultFail), unresolved)}, []string{"theirs", next}},
	} {
		t.Run(sentence, func(t *testing.T) {
			objects := append(tc.runs, yard, fresh(), web("web-staging"), storedRevision("old", yard), storedRevision("theirs", theirs))
			r := newReconciler(t, allowed, objects...)
			for range 2 { // the second finds it stored
				if got, err := r.resolve(t.Context(), fresh()); err != nil || got.resolved == nil {
					t.Fatalf("%+v, %v", got, err)
				}
			}
			var all appsv1.ControllerRevisionList
			if err := r.client.List(t.Context(), &all); err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range all.Items {
				got = append(got, all.Items[i].Name)
			}
			slices.Sort(got)
			if diff := cmp.Diff(slices.Sorted(slices.Values(tc.want)), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
