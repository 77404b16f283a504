// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// blocked is a run whose second test passed, and whose release a block stops.
func blocked() *shipper.SequenceRun {
	run := running("web-x7k2p", "staging", "delivery", 30*time.Minute)
	run.Spec.RetryOf = &shipper.RetryOf{Run: "web-a1b2c", From: "test#2"}
	run.Status.StartTime = ago(29 * time.Minute)
	run.Status.Task = "release"
	run.Status.Tasks = []shipper.TaskStatus{
		{
			Name: "deployment", Ordinal: 1, State: shipper.TaskFinished, Result: shipper.ResultPass, Completion: shipper.CompletionSucceeded,
			TriggerTime: ago(29 * time.Minute), FinishTime: ago(20 * time.Minute), Release: "shop/web-staging-6f19aa85-1",
		},
		{Name: "test", Ordinal: 1, State: shipper.TaskCarried, Result: shipper.ResultPass, Completion: shipper.CompletionSucceeded},
		{
			Name: "test", Ordinal: 2, State: shipper.TaskFinished, Result: shipper.ResultWarning, Completion: shipper.CompletionSucceeded,
			Message: "1 of 9 tests\nwas skipped\x1b[2J", TriggerTime: ago(20 * time.Minute), FinishTime: ago(10 * time.Minute),
		},
		{Name: "release", Ordinal: 1, State: shipper.TaskTriggered, TriggerTime: ago(10 * time.Minute), Release: "shop/web-staging-6f19aa85-1"},
	}
	run.Status.Conditions = shipper.SetCondition(run.Status.Conditions, shipper.Condition{
		Type: shipper.RunBlocked, Status: corev1.ConditionTrue, Reason: shipper.RolloutsBlocked,
		Message: "rollout block(s) with name(s) shop/freeze exist",
	}, *ago(0))
	return run
}

// waits is a run that one of two users has approved.
func waits() *shipper.SequenceRun {
	run := running("web-production-delivery-0c9f1", "production", "delivery", 2*time.Hour)
	run.Status.Resolved.TriggeredBy = &shipper.RunTrigger{Event: "staging.delivery.finished", Run: "web-x7k2p", Time: *ago(2 * time.Hour)}
	run.Spec.SkipRequires = &shipper.SkipRequires{Reason: "the fix for the outage"}
	run.Status.StartTime, run.Status.Task = ago(2*time.Hour), "approval"
	run.Status.Tasks = []shipper.TaskStatus{{
		Name: "approval", Ordinal: 1, State: shipper.TaskWaiting, TriggerTime: ago(2 * time.Hour), Message: "1 of 2 approvals",
		Approvals: []shipper.CountedApproval{{By: "ben", Decision: shipper.DecisionApprove, Time: *ago(time.Hour)}},
	}}
	return run
}

// failed is a run that ended with a fail, one follow-up that runs and one that was not created.
func failed() *shipper.SequenceRun {
	run := running("web-q8w1z", "production", "delivery", 3*time.Hour)
	run.Status.StartTime = ago(3 * time.Hour)
	run.Status.Tasks = []shipper.TaskStatus{
		{
			Name: "approval", Ordinal: 1, State: shipper.TaskFinished, Result: shipper.ResultPass, Completion: shipper.CompletionSucceeded,
			TriggerTime: ago(3 * time.Hour), FinishTime: ago(2 * time.Hour), Approvals: []shipper.CountedApproval{
				{By: "ben", Decision: shipper.DecisionApprove, Time: *ago(2 * time.Hour)},
				{By: "eve", Decision: shipper.DecisionApprove, Time: *ago(2 * time.Hour)},
			},
		},
		{
			Name: "deployment", Ordinal: 1, State: shipper.TaskFinished, Result: shipper.ResultFail, Completion: shipper.CompletionErrored,
			TriggerTime: ago(2 * time.Hour), FinishTime: ago(time.Hour), Message: "timed out after 1h0m0s: 2 pods ImagePullBackOff",
			Release: "shop-prod/web-6f19aa85-1",
		},
		{Name: "release", Ordinal: 1, State: shipper.TaskSkipped},
	}
	run.Status.Triggered = []shipper.TriggeredRun{
		{
			Name: "web-production-rollback-1a2b3", Stage: "production", Sequence: "rollback", Event: "production.delivery.finished",
			TakesBack: true, CreateTime: ago(time.Hour),
		},
		{
			Name: "web-audit-report-9c8d7", Stage: "audit", Sequence: "report", Event: "production.delivery.finished",
			Message: "version 1.4.2 has not passed in stage perf; no version has",
		},
		{
			Name: "web-audit-bill-1b2c3", Stage: "audit", Sequence: "bill", Event: "production.delivery.finished", Refused: true,
			Message: "sequencerun is forbidden: 20 runs follow from one another",
		},
		{Name: "web-audit-mail-5e6f7", Stage: "audit", Sequence: "mail", Event: "production.delivery.finished"},
	}
	return ends(run, shipper.ResultFail, shipper.CompletionErrored, shipper.RunFailed,
		"task deployment: timed out after 1h0m0s: 2 pods ImagePullBackOff")
}

func TestRunsAreShown(t *testing.T) {
	rollback := running("web-production-rollback-1a2b3", "production", "rollback", time.Hour)
	queued := running("web-later", "staging", "delivery", time.Minute)
	queued.Status.Behind = "web-mid"
	does(queued, shipper.RunQueued, "behind run web-mid")
	mid := running("web-mid", "staging", "delivery", 2*time.Minute)
	mid.Status.Behind = "web-x7k2p"
	held := blocked()
	held.Spec.Hold, held.Status.Conditions = "DNS is down", nil
	does(held, shipper.RunPaused, "DNS is down")
	fresh := running("web-new", "staging", "delivery", 2*time.Second)
	fresh.Status.Conditions = nil
	for name, view := range map[string]*View{
		"blocked": viewOf(blocked(), nil), "waits": viewOf(waits(), nil), "failed": viewOf(failed(), values(failed(), rollback)),
		"queued": viewOf(queued, values(queued, mid, blocked())), "held": viewOf(held, nil), "new": viewOf(fresh, nil),
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, name, view.Text(0, now))
			for line := range strings.Lines(view.Text(80, now)) {
				if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
					t.Errorf("%d columns: %s", n, line)
				}
			}
			raw, err := json.Marshal(view)
			if err != nil || strings.Contains(string(raw), "0001-01-01") || strings.Contains(view.Text(0, now), "\x1b") {
				t.Errorf("%v\n%s", err, raw)
			}
		})
	}
}

func TestPositionsAreCountedAlongTheQueue(t *testing.T) {
	run := func(name, behind string) *shipper.SequenceRun {
		return &shipper.SequenceRun{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: shipper.SequenceRunStatus{Behind: behind}}
	}
	for sentence, tc := range map[string]struct {
		run  *shipper.SequenceRun
		all  []*shipper.SequenceRun
		want int
	}{
		"the first":                   {run("a", ""), nil, 0},
		"the second":                  {run("b", "a"), []*shipper.SequenceRun{run("a", "")}, 1},
		"the third":                   {run("c", "b"), []*shipper.SequenceRun{run("a", ""), run("b", "a")}, 2},
		"the one ahead is gone":       {run("b", "a"), nil, 1},
		"two that are behind another": {run("a", "b"), []*shipper.SequenceRun{run("b", "a")}, 1},
	} {
		if got := position(tc.run, byName(values(append(tc.all, tc.run)...))); got != tc.want {
			t.Errorf("%s: position %d, want %d", sentence, got, tc.want)
		}
	}
}

func TestRunsAreListed(t *testing.T) {
	queued := running("web-later", "staging", "delivery", time.Minute)
	queued.Status.Behind = "web-x7k2p"
	does(queued, shipper.RunQueued, "behind run web-x7k2p")
	other := running("api-1", "staging", "delivery", 5*time.Minute)
	other.Namespace, other.Spec.Service, other.Spec.Shipyard = "bank", "api", "bank"
	all := values(blocked(), waits(), failed(), queued, other)
	golden(t, "list", table(listed(all, filter{}, now), true, 0, now))
	golden(t, "list-of", table(listed(all, filter{shipyard: "shop", stage: "staging", service: "web"}, now), false, 0, now))
	if got := table(listed(all, filter{service: "none"}, now), false, 0, now); got != "there are no runs\n" {
		t.Error(got)
	}
}

func TestAShipyardIsShown(t *testing.T) {
	of := example()
	of.Spec.Stages = append(of.Spec.Stages, shipper.Stage{Name: "audit"})
	run := func(name string, passed time.Duration) shipper.SequenceRun {
		out := shipper.SequenceRun{ObjectMeta: metav1.ObjectMeta{Name: name}}
		out.Spec.Stage, out.Spec.Service = "staging", "web"
		out.Status.Resolved = &shipper.ResolvedRun{Version: shipper.RunVersion{Version: "1.4.2"}}
		out.Status.Result, out.Status.FinishTime = shipper.ResultPass, ago(passed)
		return out
	}
	golden(t, "show", describe(of, []shipper.SequenceRun{run("web-old", 2*time.Hour), run("web-x7k2p", time.Hour)}, 0, now))
}

func TestARunThatNothingLooksAtSaysSo(t *testing.T) {
	const silent = "it was made 2m ago: the reconciler does not answer, `shipperctl doctor` says why"
	run := running("web-later", "staging", "delivery", 2*time.Minute)
	run.Generation, run.Status.ObservedGeneration = 2, 1
	o := &observed{run: run}
	if got := o.view(now).Text(0, now); !strings.Contains(got, "waits for  the last edit of the run to be observed; "+silent+"\n") {
		t.Errorf("it shows\n%s", got)
	}
	got := table(listed([]shipper.SequenceRun{*run}, filter{}, now), false, 0, now)
	if !strings.Contains(got, "(the reconciler does not answer)") {
		t.Errorf("the list is\n%s", got)
	}
	run.Status.ObservedGeneration = 2
	if got := o.view(now); got.Unanswered != "" {
		t.Errorf("a run that was observed: %s", got.Unanswered)
	}
}
