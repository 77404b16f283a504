// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// isFor reports whether a task is done, by whether one before it failed (K21).
func isFor(of *shipper.Task, failed bool) bool {
	switch of.When {
	case shipper.TaskAlways:
		return true
	case shipper.TaskWhenFailed:
		return failed
	}
	return !failed
}

// soFar is the result of the tasks so far: fail if one failed, else warning if one warned, else pass.
func (p *plan) soFar() shipper.Result {
	out := shipper.ResultPass
	for _, task := range p.status.Tasks {
		switch task.Result {
		case shipper.ResultFail:
			return shipper.ResultFail
		case shipper.ResultWarning:
			out = shipper.ResultWarning
		}
	}
	return out
}

// completion is errored if a task was not done to its end; aborted are only runs that a user or another run ended.
func (p *plan) completion() shipper.Completion {
	for _, task := range p.status.Tasks {
		if task.Completion != "" && task.Completion != shipper.CompletionSucceeded {
			return shipper.CompletionErrored
		}
	}
	return shipper.CompletionSucceeded
}

// firstFailure says which task failed first, and why; empty if none has.
func (p *plan) firstFailure() string {
	for _, task := range p.status.Tasks {
		if task.Result == shipper.ResultFail {
			return shorten("task " + NameOf(&task) + ": " + task.Message)
		}
	}
	return ""
}

// unmeasured names the first evaluation that passed although it measured nothing; empty if there is none.
func (p *plan) unmeasured() string {
	for i := range p.status.Tasks {
		if task := &p.status.Tasks[i]; task.Result == shipper.ResultPass && measuresNothing(p.task(i)) {
			return "task " + NameOf(task) + ": " + NothingMeasured
		}
	}
	return ""
}

// finish ends the run, and lists the runs that follow from it.
func (p *plan) finish(result shipper.Result, completion shipper.Completion, reason, message string) {
	p.clock(false)
	for i := range p.status.Tasks {
		if task := &p.status.Tasks[i]; task.State != shipper.TaskFinished && task.State != shipper.TaskSkipped &&
			task.State != shipper.TaskCarried {
			task.State, task.FinishTime = shipper.TaskFinished, &p.now
			task.Result, task.Completion = result, completion
		}
	}
	p.status.Result, p.status.Completion, p.status.Message = result, completion, shorten(message)
	p.status.FinishTime, p.status.Task, p.status.Behind = &p.now, "", ""
	p.status.Conditions = shipper.SetCondition(p.status.Conditions, shipper.Condition{
		Type: shipper.RunFinished, Status: corev1.ConditionTrue, Reason: reason, Message: shorten(message),
	}, p.now)
	if shipper.FindCondition(p.status.Conditions, shipper.RunBlocked) != nil {
		p.status.Conditions = shipper.SetCondition(p.status.Conditions, shipper.Condition{
			Type: shipper.RunBlocked, Status: corev1.ConditionFalse,
		}, p.now)
	}
	failed := corev1.ConditionFalse
	if result == shipper.ResultFail {
		failed = corev1.ConditionTrue
	}
	p.status.Conditions = shipper.SetCondition(p.status.Conditions, shipper.Condition{
		Type: shipper.RunHasFailed, Status: failed, Reason: reason,
	}, p.now)
	ended := p.Run.DeepCopy()
	ended.Status = p.status
	p.status.Triggered = FollowUps(ended, p.Snapshot)
}

// isFinished reports whether this decision ends the run.
func (p *plan) isFinished() bool {
	return shipper.ConditionTrue(p.status.Conditions, shipper.RunFinished)
}

// unfinished says what a run that is not finished does.
func (p *plan) unfinished(reason, message string) {
	p.status.Conditions = shipper.SetCondition(p.status.Conditions, shipper.Condition{
		Type: shipper.RunFinished, Status: corev1.ConditionFalse, Reason: reason, Message: shorten(message),
	}, p.now)
}
