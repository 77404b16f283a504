// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// newCase is a new run, and the objects that exist.
type newCase struct {
	run     *shipper.SequenceRun
	objects []client.Object
	// want is why it is refused, or cannot be resolved yet; empty if it is resolved.
	want string
}

// allowed lets ServiceAccounts patch Applications.
var allowed = interceptor.Funcs{Create: func(
	ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption,
) error {
	if review, is := obj.(*authorizationv1.SubjectAccessReview); is {
		review.Status.Allowed = review.Spec.User == "system:serviceaccount:shop:shipper-runner" &&
			review.Spec.ResourceAttributes.Verb == "patch" && review.Spec.ResourceAttributes.Name != "theirs-staging"
		return nil
	}
	return c.Create(ctx, obj, opts...)
}}

// web is the Application of a service in staging, at ~1.
func web(name string) *shipper.Application {
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	app.Spec.Template.Chart = shipper.Chart{Name: "web", Version: "~1", RepoURL: "https://charts.example"}
	return app
}

func (tc newCase) judged(t *testing.T) judgement {
	t.Helper()
	objects := append(tc.objects, tc.run, web("web-staging"), web("web-production"), web("theirs-staging"))
	got, err := newReconciler(t, allowed, objects...).resolve(t.Context(), tc.run.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (tc newCase) check(t *testing.T) {
	t.Helper()
	got := tc.judged(t)
	if diff := cmp.Diff(tc.want, got.refused+got.unresolved); diff != "" || (got.resolved == nil) != (tc.want != "") {
		t.Errorf("resolved as %+v; -want +got:\n%s", got.resolved, diff)
	}
}

// fresh is a run of ann as it was created.
func fresh(edits ...func(*shipper.SequenceRun)) *shipper.SequenceRun {
	return runOf("fresh", append([]func(*shipper.SequenceRun){func(run *shipper.SequenceRun) {
		run.Status, run.CreationTimestamp = shipper.SequenceRunStatus{}, after(0)
	}}, edits...)...)
}

func requesting(version any) func(*shipper.SequenceRun) {
	return func(run *shipper.SequenceRun) {
		run.Spec.Data = shipper.FreeForm{"deployment": map[string]any{"version": version}}
	}
}

func inProduction(run *shipper.SequenceRun) { run.Spec.Stage = "production" }

// strict is the Shipyard, with a stage production that requires staging.
func strict() *shipper.Shipyard {
	yard := theShipyard()
	yard.Spec.Stages[1].Requires = []shipper.StageRequirement{{Stage: "staging"}}
	return yard
}

// many are unfinished runs.
func many(n int) []client.Object {
	var out []client.Object
	for i := range n {
		out = append(out, runOf(fmt.Sprintf("r%d", i)))
	}
	return out
}

func TestARunIsResolvedByItsShipyardAsItIs(t *testing.T) {
	yard := []client.Object{theShipyard()}
	only, deleted := theShipyard(), theShipyard()
	only.Spec.Services = []string{"api"}
	deleted.DeletionTimestamp, deleted.Finalizers = &metav1.Time{Time: noon}, []string{"x"}
	const lacks = "stage production of shipyard yard requires more: version 1.2.3 has not passed in stage staging; no version has; to run " +
		"it all the same, set spec.skipRequires with a reason (the verb override on shipyards/production or shipyards of shipper.booking.com, " +
		"name yard, in namespace shop is needed)"
	for sentence, tc := range map[string]newCase{
		"one that its Shipyard can run": {fresh(), yard, ""},
		"one that a user holds":         {fresh(func(run *shipper.SequenceRun) { run.Spec.Hold = "lunch" }), yard, ""},
		"one of a Shipyard that is gone": {
			fresh(), nil, `spec.shipyard: Not found: "yard": there is no Shipyard in namespace shop`,
		},
		"one of a Shipyard that is being deleted": {
			fresh(), []client.Object{deleted}, "Shipyard yard is being deleted: no run of it starts",
		},
		"one of a stage that is not there": {
			fresh(func(run *shipper.SequenceRun) { run.Spec.Stage = "qa" }), yard,
			`spec.stage: Invalid value: "qa": is no stage of the shipyard; there are: staging, production`,
		},
		"one of a service that the Shipyard does not have": {
			fresh(), []client.Object{only}, `spec.service: Invalid value: "web": is no service of the shipyard; there are: api`,
		},
		"one in a stage with too many runs": {
			fresh(), append(many(shipyard.MaxUnfinished), yard...),
			"200 runs of stage staging of shipyard yard are not finished: wait, or abort some",
		},
		"one before too many runs": {
			fresh(func(run *shipper.SequenceRun) { run.CreationTimestamp = after(-7200) }), append(many(shipyard.MaxUnfinished), yard...), "",
		},
		"one whose version lacks what its stage requires": {fresh(inProduction), []client.Object{strict()}, lacks},
		"one whose version has what its stage requires": {
			fresh(inProduction), []client.Object{strict(), runOf("before", ended(shipper.ResultPass))}, "",
		},
		"one that skips what its stage requires": {
			fresh(inProduction, func(run *shipper.SequenceRun) { run.Spec.SkipRequires = &shipper.SkipRequires{Reason: "haste"} }),
			[]client.Object{strict()}, "",
		},
		"one of a service without an Application": {
			fresh(func(run *shipper.SequenceRun) { run.Spec.Service = "api" }), yard,
			`spec.service: Invalid value: "api": Application shop/api-staging has to exist: stage staging deploys the service to it`,
		},
		"one whose runner may not write the Application": {
			fresh(func(run *shipper.SequenceRun) { run.Spec.Service = "theirs" }), yard,
			"ServiceAccount shop/shipper-runner, with whose rights runs of shipyard yard write, may not patch applications/theirs-staging in " +
				"shop: who owns that namespace allows it by: " + shipper.BindRunnerCommand("shop", "shipper-runner", "shop"),
		},
		"one of a version that is not there": {
			fresh(requesting("9.9.9")), yard, `spec.data[deployment].version: Invalid value: "9.9.9": no version matches`,
		},
		"one of a version that is a number": {
			fresh(requesting(1.4)), yard, `spec.data[deployment].version: Invalid value: 1.4: must be a text such as "1.4.2" or "~1.4"`,
		},
		"one of a constraint while the repository does not answer": {
			fresh(requesting("~6.6.6")), yard, `chart web "~6.6.6" cannot be resolved to a version now: repository cannot be reached`,
		},
		"one of an exact version while the repository does not answer": {fresh(requesting("6.6.6")), yard, ""},
		"one of an exact version where others must have passed, while the repository does not answer": {
			fresh(inProduction, requesting("6.6.6")), []client.Object{strict()},
			`chart web "6.6.6" cannot be resolved to a version now: repository cannot be reached`,
		},
		"one with the name of a run that follows": {
			fresh(func(run *shipper.SequenceRun) { run.Name = "web.1" }), yard,
			`metadata.name: Invalid value: "web.1": is one of a run that follows from another: leave out dots`,
		},
	} {
		t.Run(sentence, tc.check)
	}
}

func TestWhatANewRunDoes(t *testing.T) {
	yard := theShipyard()
	want := shipyard.Resolved(shipyard.Snapshot(yard), "staging", "delivery")
	want.Revision, want.Context = shipyard.RevisionOf(yard), "fresh-uid"
	want.Version = shipper.RunVersion{Name: "web", Version: "1.2.3", Digest: "d"}
	r := newReconciler(t, allowed, yard, web("web-staging"), fresh())
	got, err := r.resolve(t.Context(), fresh())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.resolved); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	run := fresh()
	run.Status.Resolved = got.resolved
	stored, err := newRevisions(r.client).of(t.Context(), run) // as another process reads it
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(shipyard.Snapshot(yard), stored); diff != "" {
		t.Errorf("the revision (-want +got):\n%s", diff)
	}
	signs := newCase{fresh(func(run *shipper.SequenceRun) { run.Spec.Sequence = "sign" }), []client.Object{yard}, ""}
	if got := signs.judged(t); got.resolved == nil || got.resolved.Version != (shipper.RunVersion{}) {
		t.Errorf("a run that deploys nothing is resolved as %+v", got)
	}
}

// Runs of a queue are resolved as they were created: what a run finds of those before it does not depend on which is looked at first.
func TestRunsOfAQueueAreResolvedInOrder(t *testing.T) {
	first := func(edits ...func(*shipper.SequenceRun)) client.Object {
		return runOf("first", append([]func(*shipper.SequenceRun){unresolved}, edits...)...)
	}
	sameSecond := func(version string) func(*shipper.SequenceRun) {
		return func(run *shipper.SequenceRun) { run.CreationTimestamp, run.ResourceVersion = after(0), version }
	}
	repositoryIsAway := func(run *shipper.SequenceRun) {
		run.Status.Conditions = []shipper.Condition{{Type: shipper.RunFinished, Status: "False", Reason: shipper.RunUnresolved}}
	}
	for sentence, tc := range map[string]struct {
		other client.Object
		waits bool
		want  string
	}{
		"one before is not resolved":              {first(), true, ""},
		"one before cannot be resolved":           {first(repositoryIsAway), false, "behind run first, which cannot be resolved now"},
		"one before is aborted":                   {first(abort), false, ""},
		"one of the same second is before":        {first(sameSecond("9")), true, ""},
		"one of the same second is later":         {first(sameSecond("11")), false, ""},
		"one before is resolved":                  {runOf("first"), false, ""},
		"one later is not resolved":               {first(func(run *shipper.SequenceRun) { run.CreationTimestamp = after(60) }), false, ""},
		"one of another service is not resolved":  {first(func(run *shipper.SequenceRun) { run.Spec.Service = "api" }), false, ""},
		"one of another stage is not resolved":    {first(inProduction), false, ""},
		"one of another Shipyard is not resolved": {first(func(run *shipper.SequenceRun) { run.Spec.Shipyard = "x" }), false, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			run := fresh()
			run.ResourceVersion = "10"
			got := newCase{run, []client.Object{theShipyard(), tc.other}, ""}.judged(t)
			if got.waits != tc.waits || got.unresolved != tc.want || (got.resolved != nil) != (!tc.waits && tc.want == "") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// The number is written with what the run does: resourceVersions change, and a second has many runs.
func TestARunGetsTheNextNumberOfItsQueue(t *testing.T) {
	run := fresh()
	numbered := func(order int64) func(*shipper.SequenceRun) {
		return func(run *shipper.SequenceRun) { run.Status.Order = order }
	}
	r := newReconciler(t, allowed, theShipyard(), web("web-staging"), run, runOf("first", numbered(4)), runOf("second", numbered(3)),
		runOf("of-production", numbered(9), in("production")), runOf("finished", ended(shipper.ResultPass), numbered(6)))
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(run)}); err != nil {
		t.Fatal(err)
	}
	if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(run), run); err != nil {
		t.Fatal(err)
	}
	if run.Status.Order != 7 || run.Status.Resolved == nil {
		t.Errorf("its number is %d, and it is resolved as %+v", run.Status.Order, run.Status.Resolved)
	}
}

// created is a follow-up as it was created.
func createdFollowUp(edits ...func(*shipper.SequenceRun)) *shipper.SequenceRun {
	return followUp(append([]func(*shipper.SequenceRun){unresolved}, edits...)...)
}

func TestAFollowUpDoesWhatTheRunBeforeTriggers(t *testing.T) {
	passed := []client.Object{runOf("first", ended(shipper.ResultPass))}
	const not = "it does not follow from run first"
	for sentence, tc := range map[string]newCase{
		"it is what the run before triggers": {createdFollowUp(), passed, ""},
		"a user has held it":                 {createdFollowUp(hold), passed, ""},
		"the run before is gone":             {createdFollowUp(), nil, "run first, which it follows from, is gone"},
		"the run before is in another namespace": {
			createdFollowUp(func(run *shipper.SequenceRun) { run.Namespace = "other" }), passed, "run first, which it follows from, is gone",
		},
		"the run before was refused": {
			createdFollowUp(), []client.Object{runOf("first", unresolved)}, "run first, which it follows from, is gone",
		},
		"the run before is under way": {createdFollowUp(), []client.Object{runOf("first", started)}, not},
		"the run before failed and triggers nothing": {
			createdFollowUp(), []client.Object{runOf("first", ended(shipper.ResultFail))}, not,
		},
		"it has another name":    {createdFollowUp(func(run *shipper.SequenceRun) { run.Name = "mine" }), passed, not},
		"it is of another stage": {createdFollowUp(func(run *shipper.SequenceRun) { run.Spec.Stage = "staging" }), passed, not},
		"the run before deployed nothing": {
			createdFollowUp(), []client.Object{runOf("first", ended(shipper.ResultPass), func(run *shipper.SequenceRun) {
				run.Status.Resolved.Version = shipper.RunVersion{}
			})}, "the first run of the delivery deploys nothing, and so has no version",
		},
	} {
		t.Run(sentence, tc.check)
	}
	got := newCase{createdFollowUp(), passed, ""}.judged(t)
	want := followUp().Status.Resolved
	if diff := cmp.Diff(want, got.resolved); diff != "" || want.TriggeredBy.Depth != 1 {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestARunThatWaitsIsDecidedAboutWithoutARead(t *testing.T) {
	held := runOf("held", func(run *shipper.SequenceRun) {
		run.Spec.Hold = "later"
		run.Status.Conditions = []shipper.Condition{{Type: shipper.RunFinished, Status: "False", Reason: shipper.RunPaused}}
	})
	d, err := newReconciler(t, interceptor.Funcs{}).decide(t.Context(), held, judgement{}, nil) // there is nothing to read
	if err != nil || !shipyard.StillWaits(&d.Status) {
		t.Errorf("%+v, %v", d.Status, err)
	}
}

// A run that is refused ends, and nothing follows from it.
func TestARefusedRunEnds(t *testing.T) {
	r := newReconciler(t, allowed, fresh())
	pass(t, r, "fresh")
	run, err := r.named(t.Context(), "shop", "fresh")
	if err != nil {
		t.Fatal(err)
	}
	got := shipper.FindCondition(run.Status.Conditions, shipper.RunFinished)
	if got == nil || got.Reason != shipper.RunRefused || run.Status.Message != got.Message || run.Status.Result != shipper.ResultFail ||
		run.Status.Resolved != nil || run.Status.Triggered != nil {
		t.Errorf("%+v", run.Status)
	}
}

func TestARunIsNotRefusedOnlyBecauseTheAPIServerCannotBeRead(t *testing.T) {
	down := interceptor.Funcs{Get: func(
		context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption,
	) error {
		return errors.New("it is down")
	}}
	for sentence, tc := range map[string]struct {
		run  *shipper.SequenceRun
		want string
	}{
		"a run of a user": {fresh(), "reading Shipyard shop/yard: it is down"},
		"a retry":         {again(), "reading Shipyard shop/yard: it is down"},
		"a follow-up":     {createdFollowUp(), "reading SequenceRun shop/first: it is down"},
	} {
		got, err := newReconciler(t, down).judge(t.Context(), tc.run)
		if diff := cmp.Diff(tc.want, message(err)); diff != "" || got != (judgement{}) {
			t.Errorf("%s: %+v; -want +got:\n%s", sentence, got, diff)
		}
	}
}
