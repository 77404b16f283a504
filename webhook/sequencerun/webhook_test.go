// SPDX-License-Identifier: Apache-2.0

package sequencerun_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	rules "shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
	"shipper.dev/shipper/webhook/sequencerun"
	"shipper.dev/shipper/webhook/state"
)

// applications are those that the API server has, besides what is cached.
type applications struct {
	*state.Reader
	known map[string]*shipper.Application
}

func (a applications) WholeApplicationNow(_ context.Context, key types.NamespacedName) (*shipper.Application, error) {
	return a.known[key.String()], nil
}

// charts resolves constraints to 1.4.2, and has no 9.9.9.
type charts struct{ err error }

func (c charts) Resolve(_ context.Context, _ string, want shipper.Chart) (repository.Resolution, error) {
	switch {
	case c.err != nil:
		return repository.Resolution{}, c.err
	case want.Version == "9.9.9":
		return repository.Resolution{}, chart.ErrNoMatch
	case strings.HasPrefix(want.Version, "~"):
		return repository.Resolution{Version: "1.4.2", Digest: "d"}, nil
	}
	return repository.Resolution{Version: want.Version, Digest: "d"}, nil
}

// shop is a Shipyard: staging deploys, checks does not, and production requires that a version passed in staging.
func shop(edits ...func(*shipper.Shipyard)) *shipper.Shipyard {
	deploys := []shipper.Task{{Name: "approval"}, {Name: "deployment"}, {Name: "test"}, {Name: "test"}}
	yard := &shipper.Shipyard{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop", UID: "yard", Generation: 3},
		Spec: shipper.ShipyardSpec{Services: []string{"web", "api"}, Stages: []shipper.Stage{
			{Name: "staging", Sequences: []shipper.Sequence{{Name: "delivery", Tasks: deploys}}},
			{Name: "production", Namespace: "shop-prod", Requires: []shipper.StageRequirement{{Stage: "staging"}}, Sequences: []shipper.Sequence{
				{Name: "delivery", Tasks: deploys, TriggeredOn: []shipper.Trigger{{Event: "staging.delivery.finished"}}},
			}},
			{Name: "checks", Sequences: []shipper.Sequence{{Name: "smoke", Tasks: []shipper.Task{{Name: "test"}}}, {Name: "other"}}},
		}},
	}
	for _, edit := range edits {
		edit(yard)
	}
	return yard
}

// run is a run that a user sends, changed by edits.
func run(edits ...func(*shipper.SequenceRun)) *shipper.SequenceRun {
	out := &shipper.SequenceRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}, Spec: shipper.SequenceRunSpec{Shipyard: "shop", Service: "web"},
	}
	for _, edit := range edits {
		edit(out)
	}
	return out
}

func in(stage string) func(*shipper.SequenceRun) {
	return func(r *shipper.SequenceRun) { r.Spec.Stage = stage }
}

func asking(version any) func(*shipper.SequenceRun) {
	return func(r *shipper.SequenceRun) {
		r.Spec.Data = shipper.FreeForm{"deployment": map[string]any{"version": version}}
	}
}

func named(name string) func(*shipper.SequenceRun) {
	return func(r *shipper.SequenceRun) { r.Name = name }
}

func retrying(name, from string) func(*shipper.SequenceRun) {
	return func(r *shipper.SequenceRun) {
		r.Spec.Service, r.Spec.RetryOf = "", &shipper.RetryOf{Run: name, From: from}
	}
}

func skipping(r *shipper.SequenceRun) { r.Spec.SkipRequires = &shipper.SkipRequires{Reason: "hotfix"} }

// stored is a run in staging that cay requested, as it is stored.
func stored(edits ...func(*shipper.SequenceRun)) *shipper.SequenceRun {
	out := run(named("old"))
	out.UID = "old-uid"
	out.Spec.Stage, out.Spec.Sequence, out.Spec.RequestedBy = "staging", "delivery", shipper.ApprovalUser{Username: "cay"}
	out.Status.Resolved = rules.Resolved(rules.Snapshot(shop()), "staging", "delivery")
	out.Status.Resolved.Revision, out.Status.Resolved.Context = rules.RevisionOf(shop()), "delivery-1"
	out.Status.Resolved.Version = shipper.RunVersion{Name: "nginx", Version: "1.4.2", Digest: "d"}
	out.Status.Resolved.EarlierRequesters = []string{"eve", "ann"}
	out.OwnerReferences = []metav1.OwnerReference{{APIVersion: "shipper.booking.com/v1alpha1", Kind: "Shipyard", Name: "shop", UID: "yard"}}
	out.Labels = map[string]string{
		shipper.ShipyardLabel: "shop", shipper.StageLabel: "staging", shipper.SequenceLabel: "delivery", shipper.ServiceLabel: "web",
	}
	for _, edit := range edits {
		edit(out)
	}
	return out
}

// ended finishes a run with a result, and lists the runs that follow.
func ended(result shipper.Result) func(*shipper.SequenceRun) {
	return func(r *shipper.SequenceRun) {
		r.Status.Result, r.Status.Completion, r.Status.FinishTime = result, shipper.CompletionSucceeded, &metav1.Time{Time: ask.Now}
		r.Status.Conditions = []shipper.Condition{{Type: shipper.RunFinished, Status: "True"}}
		for _, name := range []string{"approval", "deployment", "test", "test"} {
			task := shipper.TaskStatus{Name: name, Ordinal: 1, State: shipper.TaskFinished, Result: shipper.ResultPass}
			r.Status.Tasks = append(r.Status.Tasks, task)
		}
		r.Status.Tasks[3].Ordinal, r.Status.Tasks[3].Result = 2, result
		r.Status.Triggered = rules.FollowUps(r, rules.Snapshot(shop()))
	}
}

var rights = []string{
	"ann promote shipyards shop/shop", "bob promote shipyards/staging shop/shop", "cay promote shipyards/production shop/shop",
	"ann override shipyards/production shop/shop",
	"system:serviceaccount:shop:shipper-runner patch applications shop/web-staging",
	"system:serviceaccount:shop:shipper-runner patch applications shop-prod/web",
	"system:serviceaccount:shop:shipper-runner patch applications shop/api-staging",
	"system:serviceaccount:shop:shipper-runner patch applications shop/web-checks",
}

// webhook knows the Shipyard and more objects.
func webhook(t *testing.T, known ...client.Object) *sequencerun.Webhook {
	t.Helper()
	w := ask.Know(t, ask.Grant(rights...), append(known, shop())...)
	staging := ask.Application(ask.Version("1.4.1"), ask.Pinned("~1.4"))
	other := ask.Application(ask.Version("1.4.1"))
	bare := ask.Application(func(app *shipper.Application) { app.Spec.Template.Chart = shipper.Chart{} })
	return &sequencerun.Webhook{
		State: applications{w.State, map[string]*shipper.Application{
			"shop/web-staging": staging, "shop-prod/web": other, "shop/api-staging": bare,
		}},
		BlockCheck: w.BlockCheck, Guard: w.Guard, Charts: charts{}, Authz: w.Authz, Clock: ask.Clock(),
	}
}

// admit sends a request through both webhooks, as the API server does, and returns what is stored.
func admit(
	t *testing.T, w *sequencerun.Webhook, req *admission.Request, a *response.Response,
) (*shipper.SequenceRun, error) {
	t.Helper()
	if err := w.Default(t.Context(), req, a); err != nil {
		return nil, err
	}
	out := ask.Patched[shipper.SequenceRun](t, req, a)
	var err error
	if req.Object.Raw, err = json.Marshal(out); err != nil {
		t.Fatal(err)
	}
	return out, w.Validate(t.Context(), req, a)
}

func TestRunsAreStamped(t *testing.T) {
	a := &response.Response{}
	got, err := admit(t, webhook(t), ask.Create("bob", run(asking("~1.4"))), a)
	if err != nil {
		t.Fatal(err)
	}
	want := run(asking("~1.4"))
	want.Labels = map[string]string{
		shipper.ShipyardLabel: "shop", shipper.StageLabel: "staging", shipper.SequenceLabel: "delivery", shipper.ServiceLabel: "web",
	}
	want.OwnerReferences = stored().OwnerReferences
	want.Spec.Stage, want.Spec.Sequence = "staging", "delivery"
	want.Spec.RequestedBy = shipper.ApprovalUser{Username: "bob"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`chart nginx "~1.4" was resolved to 1.4.2`}, a.Warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if got := a.AuditAnnotations()[response.AuditRunStarted]; got != "staging/delivery of shop for web 1.4.2" {
		t.Errorf("the audit log says %q", got)
	}
}

func TestVersionsAreThoseOfTheApplication(t *testing.T) {
	for sentence, tc := range map[string]struct {
		run  *shipper.SequenceRun
		want string
	}{
		"the one that is asked for":                                      {run(asking("1.3.0")), "staging/delivery of shop for web 1.3.0"},
		"without one, what the constraint of the Application stands for": {run(), "staging/delivery of shop for web 1.4.2"},
		"without a constraint, the version of the Application": {
			run(in("production"), skipping), "production/delivery of shop for web 1.4.1",
		},
		"none, where nothing is deployed": {
			run(in("checks"), func(r *shipper.SequenceRun) { r.Spec.Sequence = "smoke" }), "checks/smoke of shop for web",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			a := &response.Response{}
			if _, err := admit(t, webhook(t), ask.Create("ann", tc.run), a); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, a.AuditAnnotations()[response.AuditRunStarted]); diff != "" {
				t.Errorf("the audit log (-want +got):\n%s", diff)
			}
		})
	}
}

func TestADryRunSaysWhatWouldBeDone(t *testing.T) {
	a, req := &response.Response{}, ask.Create("bob", run(asking("~1.4")))
	req.DryRun = ptr.To(true)
	if _, err := admit(t, webhook(t), req, a); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`chart nginx "~1.4" was resolved to 1.4.2`, "would run sequence delivery of stage staging: approval, deployment, test, test; version " +
			"1.4.2 of chart nginx for Application shop/web-staging; by generation 3 of Shipyard shop, as ServiceAccount shipper-runner",
	}
	if diff := cmp.Diff(want, a.Warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

const invalid = `SequenceRun.shipper.booking.com "web-1" is invalid: `

func TestRunsByUsers(t *testing.T) {
	const requires = "stage production of shipyard shop requires more: version 1.4.1 has not passed in stage staging; "
	passed, failed := stored(ended(shipper.ResultPass)), stored(ended(shipper.ResultFail))
	following := func(r *shipper.SequenceRun) {
		r.Status.Resolved.TriggeredBy = &shipper.RunTrigger{Event: "x", Run: "before", Depth: 1}
		r.Spec.Data = shipper.FreeForm{"earlier": map[string]any{"deployment": []any{map[string]any{"version": "1.0.0"}}}}
	}
	large := func(r *shipper.SequenceRun) { r.Spec.Data = shipper.FreeForm{"a": strings.Repeat("x", 260<<10)} }
	reserved := func(r *shipper.SequenceRun) { r.Spec.Data = shipper.FreeForm{"result": "pass"} }
	for sentence, tc := range map[string]struct {
		user     string
		run      *shipper.SequenceRun
		known    []client.Object
		decision response.Decision
		message  string
	}{
		"by a user": {user: "ann", run: run()}, // the policy asks for the right
		"of a Shipyard that is not there": {
			user: "ann", run: run(func(r *shipper.SequenceRun) { r.Spec.Shipyard = "shp" }), decision: response.Invalid,
			message: invalid + `spec.shipyard: Not found: "shp": there are: shop`,
		},
		"of a stage that is not there": {
			user: "ann", run: run(in("prod")), decision: response.Invalid,
			message: invalid + `spec.stage: Invalid value: "prod": is no stage of the shipyard; there are: staging, production, checks`,
		},
		"of a service that is not there": {
			user: "ann", run: run(func(r *shipper.SequenceRun) { r.Spec.Service = "wbe" }), decision: response.Invalid,
			message: invalid + `spec.service: Invalid value: "wbe": is no service of the shipyard; there are: web, api`,
		},
		"of an Application that is not there": {
			user: "ann", run: run(in("production"), func(r *shipper.SequenceRun) { r.Spec.Service = "api" }), decision: response.Forbidden,
			message: "ServiceAccount shop/shipper-runner, with whose rights runs of shipyard shop write, may not patch " +
				"applications/api in shop-prod: " +
				"who owns that namespace allows it by: kubectl create rolebinding shop-shipper-runner --clusterrole=shipper:runner " +
				"--serviceaccount=shop:shipper-runner -n shop-prod",
		},
		"of tests alone, where the runner has no rights": {
			user: "ann", run: run(in("checks"), func(r *shipper.SequenceRun) { r.Spec.Service, r.Spec.Sequence = "api", "smoke" }),
			decision: response.Forbidden,
			message: "ServiceAccount shop/shipper-runner, with whose rights runs of shipyard shop write, may not patch " +
				"applications/api-checks in shop: who owns that namespace allows it by: kubectl create rolebinding shop-shipper-runner " +
				"--clusterrole=shipper:runner --serviceaccount=shop:shipper-runner -n shop",
		},
		"of an Application without a chart": {
			user: "ann", run: run(func(r *shipper.SequenceRun) { r.Spec.Service = "api" }), decision: response.Invalid,
			message: invalid + `spec.service: Invalid value: "api": Application shop/api-staging has no chart of a ` +
				`repository: a deployment has no ` +
				"version to write into it",
		},
		"of a version that is not there": {
			user: "ann", run: run(asking("9.9.9")), decision: response.Invalid,
			message: invalid + `spec.data[deployment].version: Invalid value: "9.9.9": ` + chart.ErrNoMatch.Error(),
		},
		"of a version that is no text": {
			user: "ann", run: run(asking(int64(1))), decision: response.Invalid,
			message: invalid + `spec.data[deployment].version: Invalid value: 1: must be a text such as "1.4.2" or "~1.4"`,
		},
		"with the name of a run that follows": {
			user: "ann", run: run(named("web-production-delivery.1")), decision: response.Invalid,
			message: strings.Replace(invalid, "web-1", "web-production-delivery.1", 1) + `metadata.name: Invalid value: ` +
				`"web-production-delivery.1": is one of a run that follows from another: leave out dots`,
		},
		"with too much data": {
			user: "ann", run: run(large), decision: response.Invalid,
			message: invalid + "spec.data: Forbidden: 261 KiB of 256: put it into a store and pass its URL",
		},
		"with data that Shipper writes": {
			user: "ann", run: run(reserved), decision: response.Invalid,
			message: invalid + "spec.data[result]: Forbidden: is written by Shipper: leave it out",
		},
		"of a version that has not passed": {
			user: "cay", run: run(in("production")), decision: response.Forbidden,
			message: requires + "no version has; to run it all the same, set spec.skipRequires with a reason (the verb override on " +
				"shipyards/production or shipyards of shipper.booking.com, name shop, in namespace shop is needed)",
		},
		"of a version that has not passed, while another has": {
			user: "cay", run: run(in("production")), known: []client.Object{passed}, decision: response.Forbidden,
			message: requires + "1.4.2 has; to run it all the same, set spec.skipRequires with a reason (the verb override on " +
				"shipyards/production or shipyards of shipper.booking.com, name shop, in namespace shop is needed)",
		},
		"of a version that has passed": {user: "cay", run: run(in("production"), asking("1.4.2")), known: []client.Object{passed}},
		"of a version that has failed": {
			user: "cay", run: run(in("production"), asking("1.4.2")), known: []client.Object{failed}, decision: response.Forbidden,
			message: strings.Replace(requires, "1.4.1", "1.4.2", 1) + "no version has; to run it all the same, set " +
				"spec.skipRequires with a reason " +
				"(the verb override on shipyards/production or shipyards of shipper.booking.com, name shop, in namespace shop is needed)",
		},
		"that skips what is required": {user: "ann", run: run(in("production"), skipping)},
		"that repeats a failed one":   {user: "bob", run: run(retrying("old", "")), known: []client.Object{failed}},
		"that repeats the second test of one that passed": {
			user: "bob", run: run(retrying("old", "test#2")), known: []client.Object{passed},
		},
		"that deploys again what was approved for one that passed": {
			user: "bob", run: run(retrying("old", "deployment")), known: []client.Object{passed}, decision: response.Invalid,
			message: invalid + `spec.retryOf.from: Invalid value: "deployment": task deployment of run old has done what was approved, ` +
				"and the approval must be given again: begin with approval",
		},
		"that repeats one that followed, with the data of tasks before": {
			user: "bob", run: run(retrying("old", "")), known: []client.Object{stored(ended(shipper.ResultFail), following)},
		},
		"that repeats one that was refused": {
			user: "bob", run: run(retrying("old", "")), decision: response.Invalid,
			known: []client.Object{stored(ended(shipper.ResultFail), func(r *shipper.SequenceRun) {
				r.Status.Conditions[0].Reason = shipper.RunRefused
			})},
			message: invalid + `spec.retryOf.run: Invalid value: "old": was refused before it began: create a run without retryOf`,
		},
		"that repeats one that passed": {
			user: "bob", run: run(retrying("old", "")), known: []client.Object{passed}, decision: response.Invalid,
			message: invalid + `spec.retryOf.run: Invalid value: "old": has passed: set from to the task to begin with, or ` +
				`create a run without retryOf`,
		},
		"that repeats from a task that is not there": {
			user: "bob", run: run(retrying("old", "test#3")), known: []client.Object{failed}, decision: response.Invalid,
			message: invalid + `spec.retryOf.from: Invalid value: "test#3": is no task of sequence delivery in stage ` +
				`staging; the second of a name ` +
				"is NAME#2",
		},
		"that repeats one under way": {
			user: "bob", run: run(retrying("old", "")), known: []client.Object{stored()}, decision: response.Invalid,
			message: invalid + `spec.retryOf.run: Invalid value: "old": is under way: abort it, or wait until it has finished`,
		},
		"that repeats one that is gone": {
			user: "bob", run: run(retrying("old", "")), decision: response.Invalid, message: invalid + `spec.retryOf.run: Not found: "old"`,
		},
		"that repeats one of a Shipyard that is gone": {
			user: "bob", run: run(retrying("old", "")), decision: response.Invalid,
			known: []client.Object{stored(ended(shipper.ResultFail), func(r *shipper.SequenceRun) { r.Status.Resolved.Revision.UID = "before" })},
			message: invalid + `spec.retryOf.run: Invalid value: "old": is a run of a Shipyard shop that was deleted: create a run without ` +
				"retryOf",
		},
		"that repeats one with other data": {
			user: "bob", run: run(retrying("old", ""), asking("1.0.0")), known: []client.Object{failed}, decision: response.Invalid,
			message: invalid + "spec.data: Forbidden: is copied from run old: leave it out",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := admit(t, webhook(t, tc.known...), ask.Create(tc.user, tc.run), &response.Response{})
			ask.CheckRefusal(t, err, tc.decision, tc.message)
		})
	}
}

func TestRetriesAreOfTheSameSequence(t *testing.T) {
	before := stored(ended(shipper.ResultFail), asking("~1"))
	got, err := admit(t, webhook(t, before), ask.Create("bob", run(retrying("old", "approval"))), &response.Response{})
	if err != nil {
		t.Fatal(err)
	}
	want := shipper.SequenceRunSpec{
		Shipyard: "shop", Stage: "staging", Sequence: "delivery", Service: "web", RetryOf: &shipper.RetryOf{Run: "old", From: "approval"},
		RequestedBy: shipper.ApprovalUser{Username: "bob"},
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func TestRunsOverTheBoundsAreRefused(t *testing.T) {
	var known []client.Object
	for range rules.MaxUnfinished {
		known = append(known, stored(named("r"+string(rune(0x4e00+len(known))))))
	}
	_, err := admit(t, webhook(t, known...), ask.Create("ann", run()), &response.Response{})
	ask.CheckRefusal(t, err, response.Forbidden, "200 runs of stage staging of shipyard shop are not finished: wait, or abort some")
}

// Unfinished runs are decided about again and again, and read whole: a tenant must not fill memory and time with large ones.
func TestTheDataOfUnfinishedRunsIsBounded(t *testing.T) {
	large := func(r *shipper.SequenceRun) { r.Spec.Data = shipper.FreeForm{"x": strings.Repeat("x", 200<<10)} }
	elsewhere := func(r *shipper.SequenceRun) { r.Spec.Shipyard = "other" }
	var known []client.Object
	for range rules.MaxUnfinishedBytes / (200 << 10) {
		one := stored(named("r"+string(rune(0x4e00+len(known)))), large, elsewhere)
		rules.Strip(one)
		known = append(known, one)
	}
	_, err := admit(t, webhook(t, known...), ask.Create("ann", run(large)), &response.Response{})
	ask.CheckRefusal(t, err, response.Forbidden, "the runs of namespace shop that are not finished have 16200 KiB of data, this one has "+
		"200 KiB, and together they may have 16384 KiB: wait, abort some, or give less data")
	for sentence, w := range map[string]*sequencerun.Webhook{"one fewer": webhook(t, known[1:]...), "without data": webhook(t, known...)} {
		edits := []func(*shipper.SequenceRun){large}
		if sentence == "without data" {
			edits = nil
		}
		if _, err := admit(t, w, ask.Create("ann", run(edits...)), &response.Response{}); err != nil {
			t.Errorf("%s: %v", sentence, err)
		}
	}
}

func TestRunsThatWaitAreWarnedOf(t *testing.T) {
	frozen := ask.Block("shop/freeze")
	a := &response.Response{}
	if _, err := admit(t, webhook(t, frozen, stored()), ask.Create("ann", run(asking("1.4.2"))), a); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"rollouts blocked by: shop/freeze: the deployment to Application shop/web-staging waits until they end, or are overridden there",
		"this run is behind 1 of service web in stage staging: old",
	}
	if diff := cmp.Diff(want, a.Warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestRepositoriesThatDoNotAnswer(t *testing.T) {
	w := webhook(t)
	w.Charts = charts{errors.New("no route")}
	a := &response.Response{}
	got, err := admit(t, w, ask.Create("ann", run(asking("1.4.2"))), a)
	if err != nil || got == nil {
		t.Errorf("an exact version: %v", err)
	}
	if diff := cmp.Diff([]string{`chart nginx "1.4.2" was admitted unseen: no route`}, a.Warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	_, err = admit(t, w, ask.Create("ann", run(asking("~1"))), a)
	ask.CheckRefusal(t, err, response.Unavailable,
		`chart nginx "~1" cannot be resolved to a version now: no route; try again in a minute, or name an exact version`)
}

// TestStampsAreNotForged sends what Shipper writes, to one webhook and to the other alone. What a run does is in its status, which users
// cannot send.
func TestStampsAreNotForged(t *testing.T) {
	good, err := admit(t, webhook(t), ask.Create("bob", run()), &response.Response{})
	if err != nil {
		t.Fatal(err)
	}
	forged := run(func(r *shipper.SequenceRun) { r.Spec.RequestedBy.Username = "ann" })
	err = webhook(t).Default(t.Context(), ask.Create("bob", forged), &response.Response{})
	ask.CheckRefusal(t, err, response.Invalid, invalid+"spec.requestedBy: Forbidden: is written by Shipper; leave it out")
	for sentence, forge := range map[string]func(*shipper.SequenceRun){
		"metadata.labels[shipper.booking.com/stage]": func(r *shipper.SequenceRun) { r.Labels[shipper.StageLabel] = "production" },
		"metadata.ownerReferences":                   func(r *shipper.SequenceRun) { r.OwnerReferences = nil },
	} {
		forged := good.DeepCopy()
		forge(forged)
		err := webhook(t).Validate(t.Context(), ask.Create("bob", forged), &response.Response{})
		ask.CheckRefusal(t, err, response.Invalid, invalid+sentence+": Forbidden: is written by Shipper; leave it out")
	}
}

// A run that follows from another is what the reconciler creates: it is judged when it is resolved.
func TestRunsOfTheReconcilerAreNotChanged(t *testing.T) {
	before := stored(ended(shipper.ResultPass))
	want := rules.FollowUp(before, &before.Status.Triggered[0])
	got, err := admit(t, webhook(t, before), ask.Create(ask.Reconciler, want.DeepCopy()), &response.Response{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
}

func TestLabelsAndOwnersStay(t *testing.T) {
	held := func(r *shipper.SequenceRun) { r.Spec.Hold = "DNS" }
	const only = `SequenceRun.shipper.booking.com "old" is invalid: `
	mine := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "mine", UID: "mine"}
	for sentence, tc := range map[string]struct {
		user     string
		now, old *shipper.SequenceRun
		decision response.Decision
		message  string
	}{
		"held by any user": {"dev", stored(held), stored(), "", ""},
		"with another label of Shipper": {
			"ann", stored(func(r *shipper.SequenceRun) { r.Labels[shipper.StageLabel] = "x" }), stored(), response.Invalid,
			only + `metadata.labels[shipper.booking.com/stage]: Forbidden: is written by Shipper; leave it out, or at "staging"`,
		},
		"without the labels and the owner, which stay": {
			"dev", stored(func(r *shipper.SequenceRun) { r.Labels, r.OwnerReferences = nil, nil }), stored(), "", "",
		},
		"with an owner of the user's, whose deletion would delete it": {
			"dev", stored(func(r *shipper.SequenceRun) { r.OwnerReferences = append(r.OwnerReferences, mine) }), stored(), response.Invalid,
			only + "metadata.ownerReferences: Forbidden: ConfigMap mine may not become an owner: the garbage collector would delete this " +
				"object with it",
		},
		"with that in place of its own": {
			"dev", stored(func(r *shipper.SequenceRun) { r.OwnerReferences = []metav1.OwnerReference{mine} }), stored(), response.Invalid,
			only + "metadata.ownerReferences: Forbidden: ConfigMap mine may not become an owner: the garbage collector would delete this " +
				"object with it",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := admit(t, webhook(t), ask.Update(tc.user, tc.now, tc.old), &response.Response{})
			ask.CheckRefusal(t, err, tc.decision, tc.message)
			if err == nil && (!cmp.Equal(got.Labels, stored().Labels) || !cmp.Equal(got.OwnerReferences, stored().OwnerReferences)) {
				t.Errorf("it has labels %v and owners %v", got.Labels, got.OwnerReferences)
			}
		})
	}
}

func TestRunsUnderWayAreKept(t *testing.T) {
	refusal := `run old is under way: abort it first: kubectl patch sr old -n shop --type=merge -p '{"spec":{"abort":"<why>"}}'`
	going := shop(func(yard *shipper.Shipyard) { yard.DeletionTimestamp = &metav1.Time{Time: ask.Now} })
	for sentence, tc := range map[string]struct {
		old      *shipper.SequenceRun
		known    []client.Object
		decision response.Decision
	}{
		"one under way":                            {stored(), nil, response.Forbidden},
		"one that has finished":                    {stored(ended(shipper.ResultFail)), nil, ""},
		"one of a namespace that is being deleted": {stored(), []client.Object{ask.GoingNamespace("shop")}, ""},
		"one of a Shipyard that was deleted": {
			stored(func(r *shipper.SequenceRun) { r.Status.Resolved.Revision.UID = "before" }), nil, "",
		},
	} {
		message := ""
		if tc.decision != "" {
			message = refusal
		}
		t.Run(sentence, func(t *testing.T) {
			err := webhook(t, tc.known...).Validate(t.Context(), ask.Delete("dev", tc.old), &response.Response{})
			ask.CheckRefusal(t, err, tc.decision, message)
		})
	}
	w := ask.Know(t, ask.Grant(), going)
	hook := &sequencerun.Webhook{State: applications{Reader: w.State}, Guard: w.Guard, Authz: w.Authz, Clock: ask.Clock()}
	if err := hook.Validate(t.Context(), ask.Delete("dev", stored()), &response.Response{}); err != nil {
		t.Errorf("one of a Shipyard that is being deleted: %v", err)
	}
}
