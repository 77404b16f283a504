// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/shipyard"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/test/env"
)

// delivery is a Shipyard in a namespace with the Application of its stage, and runs that ann has started: one waits for approval, one
// deploys.
type delivery struct {
	ns                 string
	yard               *shipper.Shipyard
	app                *shipper.Application
	waiting, deploying *shipper.SequenceRun
	// aborted was aborted before it was resolved.
	aborted *shipper.SequenceRun
}

// deliver starts the runs. ann may start them, bob and ann may approve, and eve may do both, in another stage alone.
func deliver(t *testing.T) delivery {
	t.Helper()
	d := delivery{ns: namespace(t)}
	lend(t, d.ns)
	d.app = application(d.ns, startRepository(t, "0.0.1", "0.0.2"), func(app *shipper.Application) { app.Name = "web-staging" })
	create(t, as(t, "dev"), d.app)
	tasks := []shipper.Task{{Name: "approval"}, {Name: "deployment"}}
	d.yard = &shipper.Shipyard{ObjectMeta: metav1.ObjectMeta{Namespace: d.ns, Name: "shop"}, Spec: shipper.ShipyardSpec{
		Stages: []shipper.Stage{
			{Name: "staging", Sequences: []shipper.Sequence{{Name: "delivery", Tasks: tasks}}},
			{Name: "checks", Sequences: []shipper.Sequence{{Name: "delivery", Tasks: tasks[:1]}}},
		},
	}}
	create(t, admin, d.yard)
	grant(t, "ann", "promote", "shipyards/staging")
	grant(t, "ann", "approve", "shipyards/staging")
	grant(t, "bob", "approve", "shipyards")
	grant(t, "eve", "promote", "shipyards/checks")
	grant(t, "eve", "approve", "shipyards/checks")
	env.Eventually(t, "RBAC to grant these rights", func(ctx context.Context) error {
		for user, resource := range map[string]string{"ann": "staging", "bob": "", "eve": "checks"} {
			if allowed, err := permitted(ctx, user, "approve", "shipyards", resource, d.ns); err != nil || !allowed {
				return fmt.Errorf("%s may not approve: %w", user, err)
			}
		}
		if allowed, err := permitted(ctx, d.account(d.ns), "patch", "applications", "", d.ns); err != nil || !allowed {
			return fmt.Errorf("the runner may not patch: %w", err)
		}
		return nil
	})
	d.waiting, d.deploying = d.run("waiting"), d.run("deploying")
	d.aborted = d.run("aborted", func(r *shipper.SequenceRun) { r.Spec.Abort = "wrong" })
	create(t, as(t, "ann"), d.waiting, d.deploying, d.aborted)
	d.report(t, d.waiting, shipper.TaskStatus{Name: "approval", Ordinal: 1, State: shipper.TaskWaiting, EventID: "e1"})
	d.report(t, d.deploying, shipper.TaskStatus{Name: "approval", Ordinal: 1, State: shipper.TaskFinished},
		shipper.TaskStatus{Name: "deployment", Ordinal: 1, State: shipper.TaskTriggered})
	for _, run := range []*shipper.SequenceRun{d.waiting, d.deploying, d.aborted} {
		t.Cleanup(func() { // else it could not be deleted
			run.Status.Conditions = []shipper.Condition{{Type: shipper.RunFinished, Status: "True"}}
			if err := reconcilerReports(context.Background(), t, run); err != nil {
				t.Error(err)
			}
		})
	}
	return d
}

// lend lets the runner of a namespace write Applications there.
func lend(t *testing.T, ns string) {
	t.Helper()
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: shipper.DefaultRunner}
	bind(t, ns, account, "shipper:runner")
}

// run is one of stage staging that a user sends.
func (d delivery) run(name string, edits ...func(*shipper.SequenceRun)) *shipper.SequenceRun {
	out := &shipper.SequenceRun{ObjectMeta: metav1.ObjectMeta{Namespace: d.ns, Name: name}, Spec: shipper.SequenceRunSpec{
		Shipyard: "shop", Stage: "staging", Service: "web",
		Data: shipper.FreeForm{"deployment": map[string]any{"version": "0.0.2"}},
	}}
	for _, edit := range edits {
		edit(out)
	}
	return out
}

// approval is one of the run that waits.
func (d delivery) approval(edits ...func(*shipper.Approval)) *shipper.Approval {
	out := &shipper.Approval{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.ns, GenerateName: "a-"}, Spec: shipper.ApprovalSpec{Run: "waiting"},
	}
	for _, edit := range edits {
		edit(out)
	}
	return out
}

func (d delivery) report(t *testing.T, run *shipper.SequenceRun, tasks ...shipper.TaskStatus) {
	t.Helper()
	now := metav1.Now()
	for i := range tasks {
		tasks[i].TriggerTime = &now
	}
	run.Status.Tasks = tasks
	run.Status.Resolved = shipyard.Resolved(shipyard.Snapshot(d.yard), run.Spec.Stage, run.Spec.Sequence)
	run.Status.Resolved.Revision = shipyard.RevisionOf(d.yard)
	run.Status.Resolved.Version = shipper.RunVersion{Name: d.app.Spec.Template.Chart.Name, Version: "0.0.2"}
	for i := range tasks {
		if tasks[i].State == shipper.TaskWaiting {
			tasks[i].Subject = shipyard.Subject(run)
		}
	}
	if err := reconcilerReports(t.Context(), t, run); err != nil {
		t.Fatal(err)
	}
}

// reconcilerReports writes the status of a run as the reconciler.
func reconcilerReports(ctx context.Context, t *testing.T, run *shipper.SequenceRun) error {
	text, err := json.Marshal(map[string]any{"status": run.Status})
	if err != nil {
		return err
	}
	return as(t, reconcilerUser).Status().Patch(ctx, run.DeepCopy(), client.RawPatch(types.MergePatchType, text))
}

// follows makes a run one that follows from another.
func follows(r *shipper.SequenceRun) {
	r.Labels = map[string]string{shipper.TriggeredByLabel: "deploying"}
}

// account is the user name of the account with which runs of a namespace write.
func (delivery) account(namespace string) string {
	return "system:serviceaccount:" + namespace + ":" + shipper.DefaultRunner
}

// runner is that account, with the right to write anything of Shipper's.
func (d delivery) runner(t *testing.T, namespace string) *user {
	t.Helper()
	return inGroups(t, d.account(namespace), "system:serviceaccounts", editors)
}

// claims writes the template of the Application, and claims it for a run.
func (d delivery) claims(run *shipper.SequenceRun) func(*user) error {
	claim := stamp.Claim(shipyard.Claim(run))
	return func(u *user) error {
		app := d.app.DeepCopy()
		app.Annotations[shipper.AppRunAnnotation], app.Spec.Template.Chart.Version = claim, "0.0.2"
		return u.Update(context.Background(), app, client.DryRunAll)
	}
}

func TestRunsAndApprovalsAreNotForged(t *testing.T) {
	t.Parallel()
	d, other := deliver(t), namespace(t)
	creates := func(o client.Object) func(*user) error {
		return func(u *user) error {
			return u.Create(t.Context(), o.DeepCopyObject().(client.Object), client.DryRunAll)
		}
	}
	patches := func(o client.Object, text string) func(*user) error {
		return func(u *user) error {
			return u.Patch(t.Context(), copyOf(o), client.RawPatch(types.MergePatchType, []byte(text)), client.DryRunAll)
		}
	}
	given := d.approval()
	create(t, as(t, "bob"), given)
	reports := func(o client.Object, text string) func(*user) error {
		return func(u *user) error {
			text := []byte(text)
			return u.Status().Patch(t.Context(), copyOf(o), client.RawPatch(types.MergePatchType, text), client.DryRunAll)
		}
	}
	forged := func(edit func(*shipper.SequenceRun)) func(*user) error { return creates(d.run("another", edit)) }
	byShipper := refused{422, "Forbidden: is written by Shipper; leave it out"}
	const triggeredBy = "the label shipper.booking.com/triggered-by is of runs that follow from another, and is written by Shipper alone"
	for sentence, tc := range map[string]struct {
		user string
		try  func(*user) error
		want refused
	}{
		"a run by a user who may": {"ann", creates(d.run("another")), refused{}},
		"a run by a user with the right on another stage": {
			"eve", creates(d.run("another")), refused{403, `user "eve" may not start runs in stage staging of shipyard shop`},
		},
		"a run in the name of another": {
			"ann", forged(func(r *shipper.SequenceRun) { r.Spec.RequestedBy.Username = "bob" }), byShipper,
		},
		"a run that nothing triggered":                 {"ann", forged(follows), refused{403, triggeredBy}},
		"a run of Shipper's that follows from none":    {reconcilerUser, creates(d.run("another")), refused{403, triggeredBy}},
		"a run of Shipper's that follows from another": {reconcilerUser, forged(follows), refused{}},
		"a run that is made to follow": {
			"dev", patches(d.waiting, `{"metadata":{"labels":{"shipper.booking.com/triggered-by":"deploying"}}}`), byShipper,
		},
		"what a run does": {"dev", func(u *user) error {
			text := []byte(`{"status":{"resolved":{"serviceAccountName":"root"}}}`)
			return u.Status().Patch(t.Context(), copyOf(d.waiting), client.RawPatch(types.MergePatchType, text), client.DryRunAll)
		}, refused{403, "the status of runs is written by Shipper alone"}},
		"an aborted run that goes on": {
			"dev", patches(d.aborted, `{"spec":{"abort":null}}`), refused{422, "a run that was aborted stays aborted"},
		},
		"an approval of a run that is not resolved": {
			"bob", creates(d.approval(func(a *shipper.Approval) { a.Spec.Run = "aborted" })),
			refused{422, "run aborted waits for no approval: it is not resolved yet: try again"},
		},
		"the result of a run": {
			"dev", reports(d.waiting, `{"status":{"result":"pass","observedGeneration":7}}`),
			refused{403, "the status of runs is written by Shipper alone"},
		},
		"the status of an approval": {
			"bob", reports(given, `{"status":{"subject":"x"}}`), refused{403, "the status of Approvals is written by Shipper alone"},
		},
		"a Shipyard of the runner": {
			"dev", creates(sibling(d.yard)), refused{403, "may not impersonate serviceaccounts/shipper-runner in " + d.ns},
		},
		"another Shipyard while a run is under way": {"dev", func(u *user) error {
			return u.Delete(t.Context(), copyOf(d.yard), client.DryRunAll)
		}, refused{403, "runs aborted, deploying, waiting are under way: abort them first"}},
		"no run, while it is under way": {"dev", func(u *user) error {
			return u.Delete(t.Context(), copyOf(d.waiting), client.DryRunAll)
		}, refused{403, "run waiting is under way: abort it first"}},
		"a run held by any user": {"dev", patches(d.waiting, `{"spec":{"hold":"x"}}`), refused{}},
		"another requester": {
			"dev", patches(d.waiting, `{"spec":{"requestedBy":{"username":"x"}}}`), refused{422, "only hold and abort can be changed"},
		},
		"an approval": {"bob", creates(d.approval()), refused{}},
		"an approval of another content": {"bob", func(u *user) error {
			return u.Create(t.Context(), d.approval(func(a *shipper.Approval) {
				a.Spec.EventID, a.Spec.Subject, a.Spec.Time = "x", "y", &metav1.Time{Time: time.Unix(1, 0)}
			}), client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
		}, refused{422, "spec.eventID: Forbidden: is not read: leave it out"}},
		"an approval by one who may not": {
			"dev", creates(d.approval()), refused{403, `user "dev" may not approve runs in stage staging of shipyard shop: the verb approve on ` +
				"shipyards/staging or shipyards of shipper.booking.com, name shop, in namespace " + d.ns + " is needed"},
		},
		"an approval by who asked": {
			"ann", creates(d.approval()), refused{403, `user "ann" has asked for run waiting: another user has to approve it`},
		},
		"an approval by one who may elsewhere": {
			"eve", creates(d.approval(func(a *shipper.Approval) {
				a.Labels = map[string]string{shipper.ShipyardLabel: "shop", shipper.StageLabel: "checks", shipper.RunLabel: "waiting"}
			})),
			refused{403, `user "eve" may not approve runs in stage staging of shipyard shop`},
		},
		"an approval of a run that deploys": {
			"bob", creates(d.approval(func(a *shipper.Approval) { a.Spec.Run = "deploying" })),
			refused{422, "run deploying waits for no approval: task deployment is under way"},
		},
		"a claim by the runner": {"runner", d.claims(d.deploying), refused{}},
		"a claim of a run that waits": {
			"runner", d.claims(d.waiting), refused{422, "task deployment of run " + d.ns + "/waiting is not under way"},
		},
		"a claim by the runner of another namespace": {"other runner", d.claims(d.deploying), byShipper},
		"a claim by a user":                          {"dev", d.claims(d.deploying), byShipper},
	} {
		t.Run(sentence, func(t *testing.T) {
			var u *user
			switch tc.user {
			case "runner":
				u = d.runner(t, d.ns)
			case "other runner":
				u = d.runner(t, other)
			default:
				u = as(t, tc.user)
			}
			checkRefused(t, tc.try(u), tc.want)
		})
	}
}

// TestThePolicyAloneHoldsRuns forges them with both webhook configurations deleted.
func TestThePolicyAloneHoldsRuns(t *testing.T) {
	d, other := deliver(t), namespace(t)
	held := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"hold":"x"}}`))
	if err := as(t, "dev").Patch(t.Context(), d.waiting, held); err != nil {
		t.Fatal(err)
	}
	d.deploying.Status.StartTime = &metav1.Time{Time: time.Now()}
	if err := reconcilerReports(t.Context(), t, d.deploying); err != nil {
		t.Fatal(err)
	}
	withoutWebhooks(t)
	stamped := func(by string, edits ...func(*shipper.SequenceRun)) *shipper.SequenceRun {
		return d.run("another", append(edits, func(r *shipper.SequenceRun) { r.Spec.RequestedBy.Username = by })...)
	}
	approves := func(by, stage string) *shipper.Approval {
		return d.approval(func(a *shipper.Approval) {
			a.Spec.By.Username = by
			a.Labels = map[string]string{shipper.ShipyardLabel: "shop", shipper.StageLabel: stage, shipper.RunLabel: "waiting"}
		})
	}
	elsewhere := approves("eve", "checks")
	create(t, as(t, "eve"), elsewhere)
	relabels, owned := `{"metadata":{"labels":{"shipper.booking.com/stage":"staging"}}}`, fmt.Sprintf(
		`{"metadata":{"ownerReferences":[{"apiVersion":"shipper.booking.com/v1alpha1","kind":"SequenceRun","name":"waiting","uid":%q}]}}`,
		d.waiting.UID)
	const foreign = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":"none"}]}}`
	const kept = "spec, owners and Shipper's labels of an Approval cannot be changed"
	creates := func(o client.Object) func(*user) error {
		return func(u *user) error { return u.Create(t.Context(), o, client.DryRunAll) }
	}
	updates := func(text, subresource string, o client.Object) func(*user) error {
		return func(u *user) error {
			patch := client.RawPatch(types.MergePatchType, []byte(text))
			if subresource != "" {
				return u.Status().Patch(t.Context(), copyOf(o), patch, client.DryRunAll)
			}
			return u.Patch(t.Context(), copyOf(o), patch, client.DryRunAll)
		}
	}
	deletes := func(o client.Object) func(*user) error {
		return func(u *user) error { return u.Delete(t.Context(), copyOf(o), client.DryRunAll) }
	}
	const mayNot = "may not start runs in stage staging of shipyard shop"
	const mayNotResume = "may not let held runs go on in stage staging of shipyard shop"
	skips := func(r *shipper.SequenceRun) { r.Spec.SkipRequires = &shipper.SkipRequires{Reason: "x"} }
	for sentence, tc := range map[string]struct {
		user *user
		try  func(*user) error
		want refused
	}{
		"a run by a user who may":        {as(t, "ann"), creates(stamped("ann")), refused{}},
		"a run by a user who may not":    {as(t, "dev"), creates(stamped("dev")), refused{403, mayNot}},
		"a run by one who may elsewhere": {as(t, "eve"), creates(stamped("eve")), refused{403, mayNot}},
		"a run in the name of another": {
			as(t, "ann"), creates(stamped("bob")), refused{403, "spec.requestedBy must be the user who creates the run, ann"},
		},
		"a run in no name": {
			as(t, "ann"), creates(stamped("")), refused{403, "spec.requestedBy must be the user who creates the run, ann"},
		},
		"a run that nothing triggered": {as(t, "ann"), creates(stamped("ann", follows)), refused{403, "written by Shipper alone"}},
		"a run that is made to follow": {
			as(t, "dev"), updates(`{"metadata":{"labels":{"shipper.booking.com/triggered-by":"x"}}}`, "", d.waiting),
			refused{403, "written by Shipper alone"},
		},
		"what a run does": {
			as(t, "dev"), updates(`{"status":{"resolved":{"serviceAccountName":"root"}}}`, "status", d.waiting),
			refused{403, "written by Shipper alone"},
		},
		"a run that skips what is required": {
			as(t, "ann"), creates(stamped("ann", skips)),
			refused{403, `user "ann" may not skip what is required in stage staging of shipyard shop: the verb override on shipyards/staging`},
		},
		"the result of a run": {
			as(t, "dev"), updates(`{"status":{"result":"pass"}}`, "status", d.waiting), refused{403, "written by Shipper alone"},
		},
		"a run by whose failure a version has not passed": {
			as(t, "dev"), deletes(d.deploying), refused{403, "may not delete run deploying in stage staging of shipyard shop"},
		},
		"that run, deleted by a user with promote": {as(t, "ann"), deletes(d.deploying), refused{}},
		"a run that never began":                   {as(t, "dev"), deletes(d.aborted), refused{}},
		"the labels of a run": {
			as(t, "dev"), updates(`{"metadata":{"labels":{"shipper.booking.com/stage":null}}}`, "", d.deploying),
			refused{403, "of a run are written by Shipper"},
		},
		"the result of a run, by Shipper": {as(t, reconcilerUser), updates(`{"status":{"result":"pass"}}`, "status", d.waiting), refused{}},
		"a Shipyard that borrows an account": {
			as(t, "dev"), updates(`{"spec":{"serviceAccountName":"root"}}`, "", d.yard), refused{403, "may not impersonate serviceaccounts/root"},
		},
		"a label of a Shipyard":              {as(t, "dev"), updates(`{"metadata":{"labels":{"a":"b"}}}`, "", d.yard), refused{}},
		"a run that goes on":                 {as(t, "dev"), updates(`{"spec":{"hold":null}}`, "", d.waiting), refused{403, mayNotResume}},
		"a run that goes on, by one who may": {as(t, "ann"), updates(`{"spec":{"hold":null}}`, "", d.waiting), refused{}},
		"a run with an owner of the user's": {
			as(t, "dev"), updates(foreign, "", d.waiting), refused{403, "metadata.ownerReferences is written by Shipper"},
		},
		"a Shipyard, by a user who may delete it": {as(t, "dev"), updates(foreign, "", d.yard), refused{}},
		"a run that is aborted by any user":       {as(t, "dev"), updates(`{"spec":{"abort":"x"}}`, "", d.waiting), refused{}},
		"an approval":                             {as(t, "bob"), creates(approves("bob", "staging")), refused{}},
		"an approval in the name of another": {
			as(t, "bob"), creates(approves("ann", "staging")), refused{403, "spec.by must be the user who creates the Approval, bob"},
		},
		"an approval by one who may not": {
			as(t, "dev"), creates(approves("dev", "staging")), refused{403, "may not approve runs in stage staging of shipyard shop"},
		},
		"an approval that names no stage": {
			as(t, "eve"), creates(approves("eve", "")), refused{403, "may not approve runs in stage"},
		},
		"an approval that comes to be of another stage": {as(t, "dev"), updates(relabels, "", elsewhere), refused{403, kept}},
		"an approval that its author relabels":          {as(t, "eve"), updates(relabels, "", elsewhere), refused{403, kept}},
		"an approval that comes to be of another run":   {as(t, "dev"), updates(owned, "", elsewhere), refused{403, kept}},
		"the status of an approval": {
			as(t, "eve"), updates(`{"status":{"subject":"x"}}`, "status", elsewhere),
			refused{403, "the status of Approvals is written by Shipper alone"},
		},
		"a label of a user's on an approval": {as(t, "dev"), updates(`{"metadata":{"labels":{"a":"b"}}}`, "", elsewhere), refused{}},
		"a claim by the runner":              {d.runner(t, d.ns), d.claims(d.deploying), refused{}},
		"a claim by that of another": {
			d.runner(t, other), d.claims(d.deploying), refused{403, "shipper.booking.com/app.run is written by Shipper"},
		},
		"a claim by a user": {
			as(t, "dev"), d.claims(d.deploying), refused{403, "shipper.booking.com/app.run is written by Shipper"},
		},
		"an annotation besides the claim": {as(t, "dev"), updates(annotations(`"a":"b"`), "", d.app), refused{}},
		"a template by a user without claims": {
			as(t, "dev"), func(u *user) error {
				return updating(ask.Version("0.0.3"))(&lineCase{T: t, r: rolledOut{app: d.app}}, u)
			}, refused{},
		},
	} {
		t.Run(sentence, func(t *testing.T) { checkRefused(t, tc.try(tc.user), tc.want) })
	}
	t.Run("what the reconciler counts", func(t *testing.T) { d.counts(t, elsewhere, approves) })
}

// counts stores Approvals of a run, and judges them as the reconciler does. approves makes one by a user, with the label of a stage.
func (d delivery) counts(t *testing.T, elsewhere *shipper.Approval, approves func(by, stage string) *shipper.Approval) {
	t.Helper()
	early, good := approves("bob", "staging"), approves("bob", "staging")
	early.Spec.Task, good.Spec.Task = "approval", "approval"
	shipyard.StampApproval(good, d.waiting, time.Now())
	shipyard.StampApproval(early, d.waiting, time.Now())
	create(t, as(t, "bob"), early)
	run := copyOf(d.waiting).(*shipper.SequenceRun)
	began := metav1.NewTime(early.CreationTimestamp.Add(time.Second))
	task := shipper.TaskStatus{Name: "approval", Ordinal: 1, State: shipper.TaskWaiting, TriggerTime: &began}
	task.Subject = shipyard.Subject(run)
	run.Status.Tasks = []shipper.TaskStatus{task}
	env.Eventually(t, "an Approval of a later second", func(context.Context) error {
		good.ResourceVersion, good.Name = "", ""
		if err := as(t, "bob").Create(t.Context(), good); err != nil || good.CreationTimestamp.Before(&began) {
			return fmt.Errorf("it is of %s: %w", good.CreationTimestamp, err)
		}
		return nil
	})
	for a, want := range map[*shipper.Approval]string{
		good: "", early: "it was created before task approval of run waiting waited", elsewhere: "labels or owner are not those of run waiting",
	} {
		got := ""
		if refusal := shipyard.JudgeApproval(a, run, time.Now()); refusal != nil {
			got = refusal.Error()
		}
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", a.Name, got, want)
		}
	}
}
