// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// UnderWay is the task of a run that is under way; nil if there is none.
func UnderWay(run *shipper.SequenceRun) *shipper.TaskStatus {
	if len(run.Status.Tasks) == 0 || IsFinished(run) {
		return nil
	}
	switch last := &run.Status.Tasks[len(run.Status.Tasks)-1]; last.State {
	case shipper.TaskFinished, shipper.TaskSkipped, shipper.TaskCarried:
		return nil
	default:
		return last
	}
}

// Awaited is the task approval that a run waits at, and what it asks for; without one, why is the reason.
func Awaited(run *shipper.SequenceRun, now time.Time) (task *shipper.TaskStatus, asks Consent, why string) {
	task = UnderWay(run)
	switch {
	case IsFinished(run):
		return nil, asks, "it has finished"
	case run.Status.Resolved == nil:
		return nil, asks, "it is not resolved yet: try again"
	case task == nil:
		return nil, asks, "no task of it is under way"
	case task.State != shipper.TaskWaiting:
		return nil, asks, fmt.Sprintf("task %s is under way", NameOf(task))
	}
	sequence := OwnSequence(run)
	if len(run.Status.Tasks) > len(sequence.Tasks) {
		return nil, asks, "its sequence has no such task"
	}
	asks, err := ConsentOf(sequence.Tasks[len(run.Status.Tasks)-1].Properties)
	switch {
	case err != nil:
		return nil, asks, err.Error()
	case task.TriggerTime != nil && !now.Before(task.TriggerTime.Add(asks.Expires)):
		return nil, asks, fmt.Sprintf("task %s expired after %s", NameOf(task), asks.Expires)
	}
	return task, asks, ""
}

// OfStage is the stage of a snapshot; nil if there is none of the name.
func OfStage(snapshot *shipper.ShipyardSnapshot, name string) *shipper.Stage {
	if snapshot == nil {
		return nil
	}
	at := slices.IndexFunc(snapshot.Stages, func(s shipper.Stage) bool { return s.Name == name })
	if at < 0 {
		return nil
	}
	return &snapshot.Stages[at]
}

// ApplicationKey is the namespace and name of the Application of a service in a stage of a Shipyard.
func ApplicationKey(namespace string, stage *shipper.Stage, shipyard, service string) types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(stage.Namespace, namespace), Name: ApplicationOf(stage, shipyard, service)}
}

// blocked stops the clocks while the task cannot go on, and says so.
func (p *plan) blocked(out *Outcome) {
	why := ""
	if out != nil {
		why = out.Blocked
	}
	p.clock(p.Run.Spec.Hold != "" || why != "" || out != nil && out.Stands)
	condition := shipper.Condition{Type: shipper.RunBlocked, Status: corev1.ConditionFalse}
	if why != "" {
		condition.Status, condition.Reason, condition.Message = corev1.ConditionTrue, shipper.RolloutsBlocked, shorten(why)
	}
	if why != "" || shipper.FindCondition(p.status.Conditions, shipper.RunBlocked) != nil {
		p.status.Conditions = shipper.SetCondition(p.status.Conditions, condition, p.now)
	}
}

// consent counts the Approvals of a task that waits for them.
func (p *plan) consent(task *shipper.TaskStatus, of *shipper.Task) bool {
	p.clock(true)
	wanted, err := ConsentOf(of.Properties)
	if err != nil {
		p.ends(task, Outcome{Result: shipper.ResultFail, Completion: shipper.CompletionErrored, Message: err.Error()})
		return false
	}
	task.Approvals = nil
	approved := 0
	for i := range p.Approvals {
		a := &p.Approvals[i]
		if !counts(a, task) || JudgeApproval(a, p.soon(), p.now.Time) != nil {
			continue
		}
		task.Approvals = append(task.Approvals, countedApproval(a))
		if a.Spec.Decision == shipper.DecisionReject {
			p.ends(task, Outcome{Result: shipper.ResultFail, Completion: shipper.CompletionSucceeded,
				Message: a.Spec.By.Username + " rejected it"})
			return false
		}
		approved++
	}
	left := wanted.Expires - p.now.Sub(task.TriggerTime.Time)
	switch {
	case approved >= wanted.Approvals:
		p.ends(task, Outcome{Result: p.soFar(), Completion: shipper.CompletionSucceeded})
		return false
	case left <= 0:
		p.ends(task, Outcome{Result: shipper.ResultFail, Completion: shipper.CompletionErrored,
			Message: fmt.Sprintf("expired after %s with %d of %d approvals", wanted.Expires, approved, wanted.Approvals)})
		return false
	}
	task.Message = fmt.Sprintf("%d of %d approvals", approved, wanted.Approvals)
	p.wakeAfter(left)
	return true
}

// soon is the run with the status that is being decided.
func (p *plan) soon() *shipper.SequenceRun {
	run := *p.Run
	run.Status = p.status
	return &run
}
