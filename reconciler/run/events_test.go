// SPDX-License-Identifier: Apache-2.0

package run

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
)

func task(name string, ordinal int32, state shipper.TaskState, result shipper.Result, message string) shipper.TaskStatus {
	return shipper.TaskStatus{Name: name, Ordinal: ordinal, State: state, Result: result, Message: message}
}

// tasks are all that a run has.
func tasks(all ...shipper.TaskStatus) edit {
	return func(run *shipper.SequenceRun) { run.Status.Tasks = all }
}

// says sets a condition with a message.
func says(kind, reason, message string) edit {
	return func(run *shipper.SequenceRun) {
		run.Status.Conditions = shipper.SetCondition(run.Status.Conditions,
			shipper.Condition{Type: kind, Status: "True", Reason: reason, Message: message}, after(0))
	}
}

func result(result shipper.Result) edit {
	return func(run *shipper.SequenceRun) { run.Status.Result = result }
}

// changeCase is a run before and after a write of its status.
type changeCase struct {
	was, is []edit
	want    []report.Event
}

func (tc changeCase) check(t *testing.T) {
	t.Helper()
	if diff := cmp.Diff(tc.want, changes(runOf("first", tc.was...), runOf("first", tc.is...))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func eventOf(kind, reason, note string) report.Event {
	return report.Event{Type: kind, Reason: reason, Action: "Run", Note: note}
}

var (
	deploys  = task("deployment", 1, shipper.TaskTriggered, "", "")
	deployed = task("deployment", 1, shipper.TaskFinished, shipper.ResultPass, "Release web-1 is complete")
)

func TestEachTaskThatBeganOrEndedHasAnEvent(t *testing.T) {
	for sentence, tc := range map[string]changeCase{
		"nothing has changed": {[]edit{tasks(deploys)}, []edit{tasks(deploys)}, nil},
		"a task has begun": {
			nil, []edit{tasks(deploys)}, []report.Event{eventOf("Normal", "TaskTriggered", "task deployment has begun")},
		},
		"a task has begun after its delay": {
			[]edit{tasks(task("test", 2, shipper.TaskDelayed, "", ""))}, []edit{tasks(task("test", 2, shipper.TaskTriggered, "", ""))},
			[]report.Event{eventOf("Normal", "TaskTriggered", "task test#2 has begun")},
		},
		"a task says more": {
			[]edit{tasks(deploys)}, []edit{tasks(task("deployment", 1, shipper.TaskTriggered, "", "2 of 4 Pods are ready"))}, nil,
		},
		"a task waits for approvals": {
			nil, []edit{tasks(task("approval", 1, shipper.TaskWaiting, "", ""))},
			[]report.Event{eventOf("Normal", "TaskWaiting", "task approval waits for approvals")},
		},
		"tasks are delayed, skipped and carried": {nil, []edit{tasks(
			task("test", 1, shipper.TaskCarried, shipper.ResultPass, ""), task("rollback", 1, shipper.TaskSkipped, "", ""),
			task("test", 2, shipper.TaskDelayed, "", ""),
		)}, nil},
		"a task has passed and the next has begun": {
			[]edit{tasks(deploys)}, []edit{tasks(deployed, task("release", 1, shipper.TaskTriggered, "", ""))}, []report.Event{
				eventOf("Normal", "TaskFinished", "task deployment: pass; Release web-1 is complete"),
				eventOf("Normal", "TaskTriggered", "task release has begun"),
			},
		},
		"a task has passed and says nothing": {
			nil, []edit{tasks(task("approval", 1, shipper.TaskFinished, shipper.ResultPass, ""))},
			[]report.Event{eventOf("Normal", "TaskFinished", "task approval: pass")},
		},
		"a task has a warning": {
			[]edit{tasks(deploys)}, []edit{tasks(task("deployment", 1, shipper.TaskFinished, shipper.ResultWarning, "score 80 of 100"))},
			[]report.Event{eventOf("Normal", "TaskFinished", "task deployment: warning; score 80 of 100")},
		},
	} {
		t.Run(sentence, tc.check)
	}
}

func TestTheBlockAndTheEndOfARunHaveAnEventOnce(t *testing.T) {
	for sentence, tc := range map[string]changeCase{
		"a task has failed, and with it the run": {
			[]edit{tasks(deploys)},
			[]edit{
				tasks(task("deployment", 1, shipper.TaskFinished, shipper.ResultFail, "no image")), result(shipper.ResultFail),
				says(shipper.RunFinished, shipper.RunFailed, "task deployment: no image"),
			},
			[]report.Event{
				eventOf("Warning", "TaskFinished", "task deployment: fail; no image"),
				eventOf("Warning", "RunFinished", "Failed; task deployment: no image"),
			},
		},
		"a run has passed": {
			[]edit{tasks(deployed), condition(shipper.RunFinished, "False", shipper.RunRunning)},
			[]edit{tasks(deployed), result(shipper.ResultPass), says(shipper.RunFinished, shipper.RunPassed, "")},
			[]report.Event{eventOf("Normal", "RunFinished", "Passed")},
		},
		"a run has finished before": {
			[]edit{says(shipper.RunFinished, shipper.RunPassed, "")}, []edit{says(shipper.RunFinished, shipper.RunPassed, "")}, nil,
		},
		"a block stops the run": {
			[]edit{tasks(deploys), condition(shipper.RunBlocked, "False", "")},
			[]edit{tasks(deploys), says(shipper.RunBlocked, shipper.RolloutsBlocked, "RolloutBlock shop/freeze")},
			[]report.Event{eventOf("Warning", "Blocked", "RolloutBlock shop/freeze")},
		},
		"another block stops the run": {
			[]edit{says(shipper.RunBlocked, shipper.RolloutsBlocked, "RolloutBlock shop/freeze")},
			[]edit{says(shipper.RunBlocked, shipper.RolloutsBlocked, "RolloutBlock shop/night")}, nil,
		},
		"a run goes on and no block stops it": {nil, []edit{
			condition(shipper.RunFinished, "False", shipper.RunRunning), condition(shipper.RunBlocked, "False", ""),
		}, nil},
		"a block ends": {
			[]edit{says(shipper.RunBlocked, shipper.RolloutsBlocked, "RolloutBlock shop/freeze")},
			[]edit{condition(shipper.RunBlocked, "False", "")}, nil,
		},
	} {
		t.Run(sentence, tc.check)
	}
}
