// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// story is runs of a Shipyard over time, as lines of text.
type story struct {
	t      *testing.T
	now    time.Time
	stages []shipper.Stage
	runs   []*shipper.SequenceRun
	given  []shipper.Approval
	lines  []string
}

func begin(t *testing.T, tasks ...shipper.Task) *story {
	return &story{t: t, now: start, stages: []shipper.Stage{
		{Name: "staging", Sequences: []shipper.Sequence{
			{Name: "delivery", Tasks: tasks},
			{Name: "rollback", Tasks: []shipper.Task{{Name: "rollback"}}, TriggeredOn: []shipper.Trigger{{
				Event: "staging.delivery.finished", Selector: &shipper.TriggerSelector{Match: map[string]string{"result": "fail"}},
			}}},
		}},
	}}
}

// of is the revision of the Shipyard.
func (s *story) of() *shipper.ShipyardSnapshot { return &shipper.ShipyardSnapshot{Stages: s.stages} }

// creates a run.
func (s *story) creates(name, sequence string, edits ...func(*shipper.SequenceRun)) *shipper.SequenceRun {
	run := &shipper.SequenceRun{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(s.now)},
		Spec: shipper.SequenceRunSpec{
			Shipyard: "shop", Stage: "staging", Sequence: sequence, Service: "web",
		},
	}
	run.Status.Resolved = Resolved(s.of(), "staging", sequence)
	for _, edit := range edits {
		edit(run)
	}
	s.runs = append(s.runs, run)
	return run
}

// decides once, writes the status, and notes how the run is. It fails if the second decision differs from the first.
func (s *story) decides(run *shipper.SequenceRun, outcome *Outcome) Decision {
	s.t.Helper()
	d := Plan(Observed{Run: run, Others: s.runs, Outcome: outcome, Approvals: s.given, Snapshot: s.of(), Now: s.now})
	run.Status = d.Status
	again := Plan(Observed{Run: run, Others: s.runs, Approvals: s.given, Snapshot: s.of(), Now: s.now})
	if diff := cmp.Diff(d.Status, again.Status); diff != "" && (outcome == nil || outcome.Blocked == "") {
		s.t.Errorf("the next decision about %s differs (-first +second):\n%s", run.Name, diff)
	}
	s.lines = append(s.lines, fmt.Sprintf("%s %s: %s", s.now.Sub(start), run.Name, told(run, d)))
	return d
}

// told is a run in one line.
func told(run *shipper.SequenceRun, d Decision) string {
	c := shipper.FindCondition(run.Status.Conditions, shipper.RunFinished)
	var parts []string
	for _, task := range run.Status.Tasks {
		text := NameOf(&task) + " " + string(task.State)
		if task.Result != "" {
			text += " " + string(task.Result)
		}
		parts = append(parts, text)
	}
	text := c.Reason + " [" + strings.Join(parts, ", ") + "]"
	if c.Message != "" {
		text += " (" + c.Message + ")"
	}
	if d.Do != nil {
		text += " do " + NameOf(d.Do)
	}
	for _, next := range run.Status.Triggered {
		text += " triggers " + next.Stage + "." + next.Sequence
	}
	return text
}

func (s *story) after(d time.Duration) { s.now = s.now.Add(d) }

// tells compares the lines.
func (s *story) tells(want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.lines); diff != "" {
		s.t.Errorf("-want +got:\n%s", diff)
	}
}

var (
	passed  = &Outcome{Result: shipper.ResultPass, Completion: shipper.CompletionSucceeded}
	broken  = &Outcome{Result: shipper.ResultFail, Completion: shipper.CompletionErrored, Message: "image not found"}
	waiting = &Outcome{Message: "2 of 4 Pods are ready"}
)

func tasks(names ...string) []shipper.Task {
	out := make([]shipper.Task, len(names))
	for i := range names {
		out[i].Name = names[i]
	}
	return out
}

func TestTasksAreDoneInOrder(t *testing.T) {
	s := begin(t, tasks("deployment", "test", "evaluation", "test", "release")...)
	run := s.creates("a", "delivery")
	s.decides(run, nil)
	s.after(time.Minute)
	s.decides(run, waiting)
	s.decides(run, passed)
	s.decides(run, passed)
	s.decides(run, passed)
	s.decides(run, &Outcome{Result: shipper.ResultWarning, Completion: shipper.CompletionSucceeded})
	s.decides(run, passed)
	s.tells(
		"0s a: Running [deployment Triggered] do deployment",
		"1m0s a: Running [deployment Triggered] do deployment",
		"1m0s a: Running [deployment Finished pass, test Triggered] do test",
		"1m0s a: Running [deployment Finished pass, test Finished pass, evaluation Triggered] do evaluation",
		"1m0s a: Running [deployment Finished pass, test Finished pass, evaluation Finished pass, test#2 Triggered] do test#2",
		"1m0s a: Running [deployment Finished pass, test Finished pass, evaluation Finished pass, test#2 Finished warning, release "+
			"Triggered] do release",
		"1m0s a: Warning [deployment Finished pass, test Finished pass, evaluation Finished pass, test#2 Finished warning, release "+
			"Finished pass] (task evaluation: nothing was measured: properties.checks names no Check)",
	)
}

// A pass says that nothing was measured, since the evaluation of a file of Keptn has no Checks.
func TestARunSaysThatItsEvaluationMeasuredNothing(t *testing.T) {
	measured := shipper.FreeForm{"checks": []any{map[string]any{"check": "errors"}}}
	for sentence, c := range map[string]struct {
		tasks []shipper.Task
		want  string
	}{
		"no properties":  {tasks("evaluation"), "Passed: task evaluation: nothing was measured: properties.checks names no Check"},
		"its other name": {tasks("test", "evaluate"), "Passed: task evaluate: nothing was measured: properties.checks names no Check"},
		"Checks":         {[]shipper.Task{{Name: "evaluation", Properties: measured}}, "Passed: "},
		"no evaluation":  {tasks("test"), "Passed: "},
		"the second alone": {
			[]shipper.Task{{Name: "evaluation", Properties: measured}, {Name: "evaluation"}},
			"Passed: task evaluation#2: nothing was measured: properties.checks names no Check",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := begin(t, c.tasks...)
			run := s.creates("a", "delivery")
			s.decides(run, nil)
			for range c.tasks {
				s.decides(run, passed)
			}
			is := shipper.FindCondition(run.Status.Conditions, shipper.RunFinished)
			if got := is.Reason + ": " + run.Status.Message; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// KS12, K21, scenario 4: a failure ends the run, but for tasks that are for it; what listens to it is triggered.
func TestAFailureEndsARun(t *testing.T) {
	list := tasks("deployment", "test", "cleanup", "report")
	list[2].When, list[3].When = shipper.TaskAlways, shipper.TaskWhenFailed
	s := begin(t, list...)
	run := s.creates("a", "delivery")
	s.decides(run, nil)
	s.decides(run, broken)
	s.decides(run, passed)
	s.decides(run, passed)
	s.tells(
		"0s a: Running [deployment Triggered] do deployment",
		"0s a: Running [deployment Finished fail, test Skipped, cleanup Triggered] do cleanup",
		"0s a: Running [deployment Finished fail, test Skipped, cleanup Finished pass, report Triggered] do report",
		"0s a: Failed [deployment Finished fail, test Skipped, cleanup Finished pass, report Finished pass] (task deployment: image not found) "+
			"triggers staging.rollback",
	)
}

// KS13, scenario 5.
func TestATimeOutIsAFailure(t *testing.T) {
	s := begin(t, shipper.Task{Name: "deployment", Timeout: "10m"})
	run := s.creates("a", "delivery")
	s.decides(run, nil)
	s.after(9 * time.Minute)
	if d := s.decides(run, waiting); d.Recheck != time.Minute {
		t.Errorf("looked at again after %s", d.Recheck)
	}
	s.after(time.Minute)
	s.decides(run, waiting)
	s.tells(
		"0s a: Running [deployment Triggered] do deployment",
		"9m0s a: Running [deployment Triggered] do deployment",
		"10m0s a: Failed [deployment Finished fail] (task deployment: timed out after 10m0s: 2 of 4 Pods are ready) triggers staging.rollback",
	)
}

// KS14: the tasks together have a time, too. One under way ends with the run.
func TestARunThatTakesTooLongFails(t *testing.T) {
	s := begin(t, tasks("deployment", "test")...)
	s.stages[0].Sequences[0].Timeout = "15m"
	run := s.creates("a", "delivery")
	s.decides(run, nil)
	s.after(10 * time.Minute)
	s.decides(run, passed)
	s.after(4 * time.Minute)
	if d := s.decides(run, waiting); d.Recheck != time.Minute {
		t.Errorf("looked at again after %s", d.Recheck)
	}
	s.after(time.Minute)
	s.decides(run, waiting)
	s.tells(
		"0s a: Running [deployment Triggered] do deployment",
		"10m0s a: Running [deployment Finished pass, test Triggered] do test",
		"14m0s a: Running [deployment Finished pass, test Triggered] do test",
		"15m0s a: TimedOut [deployment Finished pass, test Finished fail] (took longer than 15m0s) triggers staging.rollback",
	)
}

// Scenario 6: an abort triggers nothing.
func TestAnAbortEndsARunAtOnce(t *testing.T) {
	s := begin(t, tasks("deployment", "test")...)
	run := s.creates("a", "delivery")
	s.decides(run, nil)
	run.Spec.Abort = "wrong version"
	s.decides(run, nil)
	s.tells("0s a: Running [deployment Triggered] do deployment", "0s a: Aborted [deployment Finished fail] (wrong version)")
}

// KS23, scenario 7: the task under way ends, no other begins, and no clock runs.
func TestAHeldRunEndsItsTaskAndNoClockRuns(t *testing.T) {
	list := tasks("deployment", "test")
	list[1].Timeout = "5m"
	s := begin(t, list...)
	s.stages[0].Sequences[0].Timeout = "1h"
	run := s.creates("a", "delivery")
	s.decides(run, nil)
	run.Spec.Hold = "DNS"
	s.after(time.Minute)
	s.decides(run, waiting)
	s.after(50 * time.Minute)
	s.decides(run, passed)
	s.after(50 * time.Minute)
	s.decides(run, nil)
	run.Spec.Hold = ""
	s.decides(run, nil)
	s.after(4 * time.Minute)
	s.decides(run, waiting)
	s.after(time.Minute)
	s.decides(run, waiting)
	s.tells(
		"0s a: Running [deployment Triggered] do deployment",
		"1m0s a: Paused [deployment Triggered] (DNS) do deployment",
		"51m0s a: Paused [deployment Finished pass] (DNS)",
		"1h41m0s a: Paused [deployment Finished pass] (DNS)",
		"1h41m0s a: Running [deployment Finished pass, test Triggered] do test",
		"1h45m0s a: Running [deployment Finished pass, test Triggered] do test",
		"1h46m0s a: Failed [deployment Finished pass, test Finished fail] (task test: timed out after 5m0s: 2 of 4 Pods are ready) "+
			"triggers staging.rollback",
	)
}

// Scenario 8: a block stops the clocks.
func TestABlockStopsTheClocks(t *testing.T) {
	s := begin(t, shipper.Task{Name: "release", Timeout: "10m"})
	run := s.creates("a", "delivery")
	s.decides(run, nil)
	blocked := &Outcome{Blocked: "rollouts blocked by: shop/freeze"}
	s.decides(run, blocked)
	if c := shipper.FindCondition(run.Status.Conditions, shipper.RunBlocked); c == nil || c.Status != "True" || c.Message != blocked.Blocked {
		t.Errorf("it says %v", c)
	}
	s.after(time.Hour)
	s.decides(run, blocked)
	s.decides(run, waiting)
	if shipper.ConditionTrue(run.Status.Conditions, shipper.RunBlocked) {
		t.Error("it still says Blocked")
	}
	s.after(9 * time.Minute)
	s.decides(run, waiting)
	s.after(time.Minute)
	s.decides(run, waiting)
	s.tells(
		"0s a: Running [release Triggered] do release",
		"0s a: Running [release Triggered] do release",
		"1h0m0s a: Running [release Triggered] do release",
		"1h0m0s a: Running [release Triggered] do release",
		"1h9m0s a: Running [release Triggered] do release",
		"1h10m0s a: Failed [release Finished fail] (task release: timed out after 10m0s: 2 of 4 Pods are ready) triggers staging.rollback",
	)
}

// KS18: the wait of one task.
func TestATaskIsTriggeredAfterATime(t *testing.T) {
	list := tasks("deployment", "test")
	list[1].TriggeredAfter = "10m"
	s := begin(t, list...)
	run := s.creates("a", "delivery")
	s.decides(run, nil)
	if d := s.decides(run, passed); d.Recheck != 10*time.Minute {
		t.Errorf("looked at again after %s", d.Recheck)
	}
	s.after(10 * time.Minute)
	s.decides(run, nil)
	s.tells(
		"0s a: Running [deployment Triggered] do deployment",
		"0s a: Running [deployment Finished pass, test Delayed]",
		"10m0s a: Running [deployment Finished pass, test Triggered] do test",
	)
}

func TestApprovalsMayBeAutomatic(t *testing.T) {
	list := tasks("test", "approval", "release")
	list[1].Properties = shipper.FreeForm{"pass": "automatic", "warning": "manual"}
	s := begin(t, list...)
	run, warned := s.creates("a", "delivery"), s.creates("b", "delivery", func(r *shipper.SequenceRun) { r.Spec.Service = "api" })
	s.decides(run, nil)
	s.decides(run, passed)
	s.decides(warned, nil)
	s.decides(warned, &Outcome{Result: shipper.ResultWarning, Completion: shipper.CompletionSucceeded})
	s.tells(
		"0s a: Running [test Triggered] do test",
		"0s a: Running [test Finished pass, approval Finished pass, release Triggered] do release",
		"0s b: Running [test Triggered] do test",
		"0s b: Running [test Finished warning, approval Waiting]",
	)
}

// KS17, scenarios 14 to 17.
func TestRunsOfAServiceGoOneAfterAnother(t *testing.T) {
	s := begin(t, tasks("deployment")...)
	first := s.creates("a", "delivery")
	s.decides(first, nil)
	s.after(time.Minute)
	second, back := s.creates("b", "delivery"), (*shipper.SequenceRun)(nil)
	s.decides(second, nil)
	other := s.creates("c", "delivery", func(r *shipper.SequenceRun) { r.Spec.Service = "api" })
	s.decides(other, nil)
	s.after(time.Minute)
	back = s.creates("d", "rollback")
	s.decides(back, nil)
	s.decides(second, nil)
	s.decides(first, passed)
	s.decides(second, nil)
	s.decides(back, nil)
	s.decides(back, passed)
	s.decides(second, nil)
	s.tells(
		"0s a: Running [deployment Triggered] do deployment",
		"1m0s b: Queued [] (behind run a)",
		"1m0s c: Running [deployment Triggered] do deployment",
		"2m0s d: Queued [] (behind run a)",
		"2m0s b: Queued [] (behind run d)",
		"2m0s a: Passed [deployment Finished pass]",
		"2m0s b: Queued [] (behind run d)",
		"2m0s d: Running [rollback Triggered] do rollback",
		"2m0s d: Passed [rollback Finished pass]",
		"2m0s b: Running [deployment Triggered] do deployment",
	)
}

func TestANewerRunSupersedesQueuedOnes(t *testing.T) {
	s := begin(t, tasks("deployment")...)
	s.stages[0].Sequences[0].WhenBusy = shipper.WhenBusySupersede
	a := s.creates("a", "delivery")
	s.decides(a, nil)
	s.after(time.Minute)
	b := s.creates("b", "delivery")
	s.decides(b, nil)
	s.after(time.Minute)
	c := s.creates("c", "delivery")
	s.decides(b, nil)
	s.decides(c, nil)
	s.decides(a, nil)
	s.tells(
		"0s a: Running [deployment Triggered] do deployment",
		"1m0s b: Queued [] (behind run a)",
		"2m0s b: Superseded [] (run c is newer)",
		"2m0s c: Queued [] (behind run a)",
		"2m0s a: Running [deployment Triggered] do deployment",
	)
}

func TestARunThatPreemptsBreaksIn(t *testing.T) {
	s := begin(t, tasks("deployment")...)
	s.stages[0].Sequences[1].WhenBusy = shipper.WhenBusyPreempt
	a := s.creates("a", "delivery")
	s.decides(a, nil)
	s.after(time.Minute)
	urgent := s.creates("b", "rollback")
	s.decides(urgent, nil)
	s.decides(a, nil)
	s.decides(urgent, nil)
	s.tells(
		"0s a: Running [deployment Triggered] do deployment",
		"1m0s b: Queued [] (behind run a)",
		"1m0s a: Preempted [deployment Finished fail] (run b preempted it)",
		"1m0s b: Running [rollback Triggered] do rollback",
	)
}

func TestAStageBoundsItsRuns(t *testing.T) {
	s := begin(t, tasks("deployment")...)
	one := int32(1)
	s.stages[0].MaxConcurrency = &one
	a := s.creates("a", "delivery")
	s.decides(a, nil)
	b := s.creates("b", "delivery", func(r *shipper.SequenceRun) { r.Spec.Service = "api" })
	s.decides(b, nil)
	s.decides(a, passed)
	s.decides(b, nil)
	s.tells(
		"0s a: Running [deployment Triggered] do deployment",
		"0s b: Queued [] (1 runs of stage staging are under way, and maxConcurrency is 1)",
		"0s a: Passed [deployment Finished pass]",
		"0s b: Running [deployment Triggered] do deployment",
	)
}

// A held run that has not started leaves the line, and comes back.
func TestAHeldRunLeavesTheQueue(t *testing.T) {
	s := begin(t, tasks("deployment")...)
	a := s.creates("a", "delivery", func(r *shipper.SequenceRun) { r.Spec.Hold = "not yet" })
	s.decides(a, nil)
	b := s.creates("b", "delivery")
	s.decides(b, nil)
	a.Spec.Hold = ""
	s.decides(a, nil)
	s.decides(b, passed)
	s.decides(a, nil)
	s.tells(
		"0s a: Paused [] (not yet)",
		"0s b: Running [deployment Triggered] do deployment",
		"0s a: Queued [] (behind run b)",
		"0s b: Passed [deployment Finished pass]",
		"0s a: Running [deployment Triggered] do deployment",
	)
}

// KS11: pass without succeeded is a failure.
func TestAPassThatDidNotSucceedIsAFailure(t *testing.T) {
	s := begin(t, tasks("test", "release")...)
	run := s.creates("a", "delivery")
	s.decides(run, nil)
	s.decides(run, &Outcome{Result: shipper.ResultPass, Completion: shipper.CompletionAborted})
	s.tells(
		"0s a: Running [test Triggered] do test",
		"0s a: Failed [test Finished fail, release Skipped] (task test: ) triggers staging.rollback",
	)
}
