// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// changes are the events of a run that was changed: tasks that have begun or ended, what holds the run, and its end.
func changes(was, is *shipper.SequenceRun) []report.Event {
	var out []report.Event
	add := func(kind, reason, action, format string, args ...any) {
		out = append(out, report.Event{Type: kind, Reason: reason, Action: action, Note: fmt.Sprintf(format, args...)})
	}
	for i := range is.Status.Tasks {
		task, before := &is.Status.Tasks[i], shipper.TaskState("")
		if i < len(was.Status.Tasks) {
			before = was.Status.Tasks[i].State
		}
		if task.State == before {
			continue
		}
		switch kind, name := corev1.EventTypeNormal, shipyard.NameOf(task); task.State {
		case shipper.TaskTriggered:
			add(kind, "TaskTriggered", "Run", "task %s has begun", name)
		case shipper.TaskWaiting:
			add(kind, "TaskWaiting", "Run", "task %s waits for approvals", name)
		case shipper.TaskFinished:
			if task.Result == shipper.ResultFail {
				kind = corev1.EventTypeWarning
			}
			add(kind, "TaskFinished", "Run", "%s", withMessage(fmt.Sprintf("task %s: %s", name, task.Result), task.Message))
		}
	}
	if blocked := shipper.FindCondition(is.Status.Conditions, shipper.RunBlocked); blocked != nil && blocked.Status == corev1.ConditionTrue &&
		!shipper.ConditionTrue(was.Status.Conditions, shipper.RunBlocked) {
		add(corev1.EventTypeWarning, "Blocked", "Run", "%s", blocked.Message)
	}
	if end := shipper.FindCondition(is.Status.Conditions, shipper.RunFinished); end != nil && end.Status == corev1.ConditionTrue &&
		!shipper.ConditionTrue(was.Status.Conditions, shipper.RunFinished) {
		kind := corev1.EventTypeNormal
		if is.Status.Result == shipper.ResultFail {
			kind = corev1.EventTypeWarning
		}
		add(kind, "RunFinished", "Run", "%s", withMessage(end.Reason, end.Message))
	}
	return out
}

// withMessage is a result and its message, which may be empty.
func withMessage(result, message string) string {
	if message == "" {
		return result
	}
	return result + "; " + message
}
