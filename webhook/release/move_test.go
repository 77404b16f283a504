// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
)

// gated is a Release with a gate at its first of three steps, and figures of that step.
func gated(edits ...func(*shipper.Release)) *shipper.Release {
	app := ask.Application()
	app.Spec.Template.Strategy = &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{
		ask.Step("preview", 100, 20, 100, 0), ask.Step("switched", 100, 100, 0, 100), ask.Step("full on", 0, 100, 0, 100),
	}}
	app.Spec.Template.Strategy.Steps[0].Gate = &shipper.StepGate{}
	app.Spec.Template.Strategy.Steps[1].After = "5m"
	r := ask.Release(app, nil)
	r.Generation, r.Status.ObservedGeneration = 3, 3
	r.Status.Progress = &shipper.ReleaseProgress{}
	for _, edit := range edits {
		edit(r)
	}
	return r
}

func achieving(step int32) func(*shipper.Release) {
	return func(r *shipper.Release) {
		r.Status.AchievedStep = &shipper.AchievedStep{Step: step}
		r.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseStrategyExecuted, Status: "True"}}
	}
}

// asking has the first step ask for approvals.
func asking(approvals int32) func(*shipper.Release) {
	return func(r *shipper.Release) {
		r.Spec.Environment.Strategy = r.Spec.Environment.Strategy.DeepCopy()
		r.Spec.Environment.Strategy.Steps[0].Gate.Approvals = approvals
	}
}

func approvedBy(rejected string, users ...string) func(*shipper.Release) {
	return func(r *shipper.Release) {
		r.Status.Progress.Approvals = &shipper.ReleaseApprovals{Users: users, RejectedBy: rejected}
	}
}

// checking has the first step checked, in place of a gate of its own.
func checking(results ...shipper.ReleaseCheck) func(*shipper.Release) {
	return func(r *shipper.Release) {
		s := r.Spec.Environment.Strategy.DeepCopy()
		s.Steps[0].Gate, s.Steps[0].Checks = nil, []shipper.StepCheck{{Check: "smoke"}}
		r.Spec.Environment.Strategy, r.Status.Progress.Checks = s, results
	}
}

func dryRun(r *shipper.Release) { r.Spec.Environment.Strategy.Steps[0].Checks[0].DryRun = true }

// checkingAll has the strategy checked.
func checkingAll(r *shipper.Release) {
	checking()(r)
	s := r.Spec.Environment.Strategy
	s.Checks, s.Steps[0].Checks = s.Steps[0].Checks, nil
}

func holding(reason string) func(*shipper.Release) {
	return func(r *shipper.Release) { r.Spec.Hold = reason }
}

func annotated(key, value string) func(*shipper.Release) { return ask.ReleaseAnnotated(key, value) }

// by is what the reconciler sends when it moves a Release for a reason.
func by(why string, old *shipper.Release, to int32) *shipper.Release {
	out := old.DeepCopy()
	out.Spec.TargetStep = to
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, shipper.ReleaseMovedAnnotation, stamp.Move(old, out, "somebody", why, metav1.Now()))
	return out
}

func TestGatesHold(t *testing.T) {
	name := gated().Name
	skip := "ann skip releases default/" + name
	ask403 := ". To skip it, ask a user with the verb skip on releases (kubectl auth can-i skip " +
		"releases.shipper.booking.com/" + name + " -n default)"
	closed := "step 0 (preview) is a gate and is not achieved" + ask403
	goesOn := []string{"it advances by itself to step 2 (full on) 5m after step 1 has its capacity and traffic"}
	freeze, retreat := ask.Block("global/dns"), ask.Block("global/dns")
	retreat.Spec.Allow = []shipper.RolloutBlockChange{shipper.RolloutBlockRetreat}
	blocked := "rollouts blocked by: global/dns (DNS issues, troubleshooting in progress; jdoe, 12m ago). To override: kubectl annotate rel " +
		name + " shipper.booking.com/rollout-block.override=global/dns -n default" + needed
	byItself := "Shipper advances by itself from an achieved step to the next, and nowhere while spec.hold is set: it asked to go from "
	for sentence, tc := range map[string]row{
		"while the step is not achieved": {
			req: ask.Update("dev", gated(ask.TargetStep(1)), gated()), decision: response.Forbidden, message: closed,
		},
		"also for who skips the step behind": {
			req: ask.Update("dev", gated(ask.TargetStep(2)), gated()), decision: response.Forbidden, message: closed,
		},
		"and say what is awaited": {
			req: ask.Update("dev", gated(ask.TargetStep(1)), gated(func(r *shipper.Release) {
				r.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseAdvancing, Message: "capacity is awaited"}}
			})), decision: response.Forbidden, message: "step 0 (preview) is a gate and is not achieved: capacity is awaited" + ask403,
		},
		"while a check of the step is made": {
			req: ask.Update("dev", gated(ask.TargetStep(1), checking()), gated(checking())), decision: response.Forbidden, message: closed,
		},
		"and name the checks that have not passed": {
			req: ask.Update("dev", gated(ask.TargetStep(1), checking()), gated(checking(
				shipper.ReleaseCheck{Name: "smoke", Phase: shipper.CheckHasFailed, Cluster: "us-east-1"},
				shipper.ReleaseCheck{Name: "latency", Phase: shipper.CheckHasFailed, DryRun: true},
				shipper.ReleaseCheck{Name: "load", Phase: shipper.CheckPassed, Cluster: "us-east-1"},
				shipper.ReleaseCheck{Name: "errors", Phase: shipper.CheckUndecided},
			))), decision: response.Forbidden, message: "step 0 (preview) is a gate and is not achieved: check smoke failed in us-east-1, " +
				"check errors is undecided" + ask403,
		},
		"not for a check that does not count": {
			req: ask.Update("dev", gated(ask.TargetStep(1), checking(), dryRun), gated(checking(), dryRun)), warned: goesOn,
		},
		"not for a check of the strategy where the contender has no traffic": {
			req: ask.Update("dev", gated(ask.TargetStep(1), checkingAll), gated(checkingAll)), warned: goesOn,
		},
		"for a check of the strategy where it has": {
			req:      ask.Update("dev", gated(ask.TargetStep(2), checkingAll), gated(ask.TargetStep(1), checkingAll)),
			decision: response.Forbidden, message: strings.Replace(closed, "0 (preview)", "1 (switched)", 1),
		},
		"not once it is achieved": {req: ask.Update("dev", gated(ask.TargetStep(1)), gated(achieving(0))), warned: goesOn},
		"when it lacks something again": {
			req:      ask.Update("dev", gated(ask.TargetStep(1)), gated(achieving(0), func(r *shipper.Release) { r.Status.Conditions = nil })),
			decision: response.Forbidden, message: closed,
		},
		"when approvals are asked for and the status has none": {
			req: ask.Update("dev", gated(ask.TargetStep(1), asking(2)), gated(achieving(0), asking(2))), decision: response.Forbidden,
			message: closed,
		},
		"when fewer have approved than are asked for": {
			req:      ask.Update("dev", gated(ask.TargetStep(1), asking(2)), gated(achieving(0), asking(2), approvedBy("", "ann"))),
			decision: response.Forbidden, message: closed,
		},
		"when one has refused": {
			req:      ask.Update("dev", gated(ask.TargetStep(1), asking(1)), gated(achieving(0), asking(1), approvedBy("bob", "ann"))),
			decision: response.Forbidden, message: closed,
		},
		"not when enough have approved": {
			req: ask.Update("dev", gated(ask.TargetStep(1), asking(1)), gated(achieving(0), asking(1), approvedBy("", "ann"))), warned: goesOn,
		},
		"when the status is of an earlier spec": {
			req:      ask.Update("dev", gated(ask.TargetStep(1)), gated(achieving(0), func(r *shipper.Release) { r.Generation = 4 })),
			decision: response.Forbidden, message: closed,
		},
		"not for who may skip them": {req: ask.Update("ann", gated(ask.TargetStep(1)), gated()), rights: []string{skip}, warned: goesOn},
		"not for who goes back": {
			req:    ask.Update("dev", gated(), gated(ask.TargetStep(1))),
			warned: []string{"this is a retreat: nothing advances by itself until targetStep is raised"},
		},
		"for Shipper, too": {
			req: ask.Update(ask.Reconciler, by("StepDue", gated(), 1), gated()), decision: response.Forbidden,
			message: byItself + "step 0 to step 1",
		},
		"and it goes one step at a time": {
			req: ask.Update(ask.Reconciler, by("StepDue", gated(achieving(0)), 2), gated(achieving(0))), decision: response.Forbidden,
			message: byItself + "step 0 to step 2",
		},
		"and not under a hold": {
			req:      ask.Update(ask.Reconciler, by("StepDue", gated(achieving(0), holding("x")), 1), gated(achieving(0), holding("x"))),
			decision: response.Forbidden, message: byItself + "step 0 to step 1",
		},
		"and not under a block": {
			req: ask.Update(ask.Reconciler, by("StepDue", gated(achieving(0)), 1), gated(achieving(0))), known: []client.Object{freeze},
			decision: response.Blocked, message: blocked,
		},
		"and back only under a block that allows it": {
			req:   ask.Update(ask.Reconciler, by("RolloutFailed", gated(ask.TargetStep(1)), 0), gated(ask.TargetStep(1))),
			known: []client.Object{freeze}, decision: response.Blocked, message: blocked,
		},
		"then it goes back": {
			req:   ask.Update(ask.Reconciler, by("RolloutFailed", gated(ask.TargetStep(1)), 0), gated(ask.TargetStep(1))),
			known: []client.Object{retreat}, warned: []string{"this is a retreat: nothing advances by itself until targetStep is raised"},
		},
		"a block that allows to go back lets nothing go on": {
			req: ask.Update(ask.Reconciler, by("StepDue", gated(achieving(0)), 1), gated(achieving(0))), known: []client.Object{retreat},
			decision: response.Blocked, message: strings.Replace(blocked, "ago)", "ago; lets pass: Retreat)", 1),
		},
		"and back only when it is not held": {
			req: ask.Update(ask.Reconciler, by("RolloutFailed", gated(ask.TargetStep(1), holding("x")), 0),
				gated(ask.TargetStep(1), holding("x"))),
			decision: response.Forbidden, message: byItself + "step 1 to step 0",
		},
		"an abort brings a Release back past them": {req: ask.Update(ask.Reconciler, by("NewerAborted", gated(), 2), gated())},
		"also for a move of Shipper's without a reason": {
			req: ask.Update(ask.Reconciler, gated(ask.TargetStep(2)), gated()), decision: response.Forbidden, message: closed,
		},
	} {
		t.Run(sentence, tc.throughBoth)
	}
}

// throughBoth checks what both webhooks say of a request, one after the other.
func (r row) throughBoth(t *testing.T) {
	t.Helper()
	w := webhookOf(t, ask.Grant(r.rights...), r.known...)
	a := &response.Response{}
	err := w.Default(t.Context(), r.req, a)
	if err == nil {
		after := patched(t, r.req, a)
		a = &response.Response{}
		err = w.Validate(t.Context(), after, a)
	}
	ask.CheckRefusal(t, err, r.decision, r.message)
	if diff := cmp.Diff(r.warned, a.Warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// patched is a request as the other webhook sees it.
func patched(t *testing.T, req *admission.Request, a *response.Response) *admission.Request {
	t.Helper()
	text, err := json.Marshal(ask.Patched[shipper.Release](t, req, a))
	if err != nil {
		t.Fatal(err)
	}
	out := *req
	out.Object.Raw = text
	return &out
}

func TestHolds(t *testing.T) {
	dns := ask.Block("global/dns")
	name := gated().Name
	for sentence, tc := range map[string]row{
		"begin":               {req: ask.Update("dev", gated(holding("lunch")), gated())},
		"begin under a block": {req: ask.Update("dev", gated(holding("lunch")), gated()), known: []client.Object{dns}},
		"end":                 {req: ask.Update("dev", gated(), gated(holding("lunch")))},
		"do not end under a block": {
			req: ask.Update("dev", gated(), gated(holding("lunch"))), known: []client.Object{dns}, decision: response.Blocked,
			message: story + "kubectl annotate rel " + name + " shipper.booking.com/rollout-block.override=global/dns -n default" + needed,
		},
		"are of no use where nothing goes on": {
			req: ask.Update("dev", rel(holding("lunch")), rel()), warned: []string{"nothing moves this Release by itself: hold has no effect"},
		},
	} {
		t.Run(sentence, tc.throughBoth)
	}
}

// TestMovesAndHoldsAreNoted compares the notes of requests that are admitted.
func TestMovesAndHoldsAreNoted(t *testing.T) {
	moved, heldBy := shipper.ReleaseMovedAnnotation, shipper.ReleaseHeldByAnnotation
	time := ask.Now.UTC().Format("2006-01-02T15:04:05Z")
	first := `{"by":"dev","time":"` + time + `","from":0,"to":1,"count":1}`
	third := `{"by":"CORP\\o'neill <ann@example.com>","time":"` + time + `","from":1,"to":0,"count":3}`
	for sentence, tc := range map[string]struct {
		req  *admission.Request
		want map[string]string
	}{
		"a move": {ask.Update("dev", rel(ask.TargetStep(1)), rel()), map[string]string{moved: first}},
		"another, by a user with an odd name": {
			ask.Update(`CORP\o'neill <ann@example.com>`, rel(), rel(ask.TargetStep(1), annotated(moved, `{"count":2}`))),
			map[string]string{moved: third},
		},
		"a move of Shipper's own has its reason": {
			ask.Update(ask.Reconciler, by("StepDue", gated(achieving(0)), 1), gated(achieving(0))),
			map[string]string{moved: `{"by":"` + ask.Reconciler + `","time":"` + time + `","from":0,"to":1,"count":1,"why":"StepDue"}`},
		},
		"a move because of an abort has none": {
			ask.Update(ask.Reconciler, rel(ask.TargetStep(1), annotated(moved, `{"count":7,"why":"StepDue"}`)),
				rel(annotated(moved, `{"count":7,"why":"StepDue"}`))),
			map[string]string{moved: `{"by":"` + ask.Reconciler + `","time":"` + time + `","from":0,"to":1,"count":8}`},
		},
		"a hold": {ask.Update("dev", rel(holding("x")), rel()), map[string]string{heldBy: "dev"}},
		"another reason for it": {
			ask.Update("ann", rel(holding("y")), rel(holding("x"), annotated(heldBy, "dev"))), map[string]string{heldBy: "ann"},
		},
		"the end of one": {
			ask.Update("dev", rel(annotated(heldBy, "ann")), rel(holding("x"), annotated(heldBy, "ann"))), map[string]string{},
		},
		"other writes leave them": {
			ask.Update("dev", rel(), rel(annotated(moved, first), annotated(heldBy, "ann"))),
			map[string]string{moved: first, heldBy: "ann"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			w, a := webhookOf(t, ask.Grant()), &response.Response{}
			if err := w.Default(t.Context(), tc.req, a); err != nil {
				t.Fatal(err)
			}
			after := patched(t, tc.req, a)
			is, _, err := response.Decode[shipper.Release](after)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, key := range []string{moved, heldBy} {
				if value, there := is.Annotations[key]; there {
					got[key] = value
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			if err := w.Validate(t.Context(), after, &response.Response{}); err != nil {
				t.Errorf("what one webhook wrote, the other refuses: %v", err)
			}
		})
	}
}

// TestNotesAreNotForged has a user write them, with and without the mutating webhook.
func TestNotesAreNotForged(t *testing.T) {
	moved, heldBy := shipper.ReleaseMovedAnnotation, shipper.ReleaseHeldByAnnotation
	for sentence, tc := range map[string]struct {
		rel, old *shipper.Release
	}{
		"a move that did not happen": {rel(annotated(moved, `{"by":"ann","from":0,"to":1,"count":1}`)), rel()},
		"a move by another user":     {rel(ask.TargetStep(1), annotated(moved, `{"by":"ann","from":0,"to":1,"count":1}`)), rel()},
		"a move of Shipper's":        {by("StepDue", rel(), 1), rel()},
		"a hold by another user":     {rel(holding("x"), annotated(heldBy, "ann")), rel()},
		"a hold that has not begun":  {rel(annotated(heldBy, "ann")), rel()},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := webhookOf(t, ask.Grant())
			for phase, judge := range map[string]func() error{
				"mutation":   func() error { return w.Default(t.Context(), ask.Update("dev", tc.rel, tc.old), &response.Response{}) },
				"validation": func() error { return w.Validate(t.Context(), ask.Update("dev", tc.rel, tc.old), &response.Response{}) },
			} {
				if err := judge(); err == nil {
					t.Errorf("%s admits it", phase)
				}
			}
		})
	}
}

// TestAFailedReleaseIsAbortedAsByAUser has the reconciler delete the newest Release under a block that allows aborts, and under one that
// does not.
func TestAFailedReleaseIsAbortedAsByAUser(t *testing.T) {
	app := ask.Application()
	next := ask.Release(ask.Application(ask.Version("0.0.2")), []*shipper.Release{rel()})
	freeze, aborts := ask.Block("global/dns"), ask.Block("global/dns")
	aborts.Spec.Allow = []shipper.RolloutBlockChange{shipper.RolloutBlockAbort}
	for sentence, tc := range map[string]row{
		"under none":             {req: ask.Delete(ask.Reconciler, next), known: []client.Object{app, rel(), next}},
		"under one that permits": {req: ask.Delete(ask.Reconciler, next), known: []client.Object{app, rel(), next, aborts}},
		"not under another": {
			req: ask.Delete(ask.Reconciler, next), known: []client.Object{app, rel(), next, freeze}, decision: response.Blocked,
			message: story + "kubectl annotate rel " + next.Name + " shipper.booking.com/rollout-block.override=global/dns -n default" + needed,
		},
	} {
		t.Run(sentence, tc.check)
	}
}
