// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"slices"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// rivals are the other runs of the queue.
func (p *plan) rivals() []*shipper.SequenceRun {
	return slices.DeleteFunc(slices.Clone(p.Others), func(run *shipper.SequenceRun) bool {
		return run.Name == p.Run.Name || run.Spec.Stage != p.Run.Spec.Stage || run.Spec.Service != p.Run.Spec.Service
	})
}

// superseding is a newer run in queue that ends this queued one; empty if there is none.
func (p *plan) superseding(queue []*shipper.SequenceRun) string {
	for _, run := range queue {
		if run.Spec.Sequence != p.Run.Spec.Sequence || run.Status.StartTime != nil {
			continue
		}
		of := OwnSequence(run)
		if older := CompareCreation(p.Run, run) < 0; older && of != nil && of.WhenBusy == shipper.WhenBusySupersede {
			return run.Name
		}
	}
	return ""
}

// active counts the runs of the stage that are under way.
func (p *plan) active() int {
	n := 0
	for _, run := range p.Others {
		if run.Name != p.Run.Name && run.Spec.Stage == p.Run.Spec.Stage && IsUnderWay(run) {
			n++
		}
	}
	return n
}

// underWay names the task under way; empty if there is none.
func (p *plan) underWay() string {
	if n := len(p.status.Tasks); n > 0 && !p.isFinished() {
		if task := &p.status.Tasks[n-1]; task.FinishTime == nil && task.State != shipper.TaskSkipped && task.State != shipper.TaskCarried {
			return NameOf(task)
		}
	}
	return ""
}

// preempted ends a run that another one breaks into.
func (p *plan) preempted() bool {
	queue := Queue(append(p.rivals(), p.Run))
	at := slices.IndexFunc(queue, breaksIn)
	if at < 0 || rank(p.Run) <= rank(queue[at]) {
		return false
	}
	p.finish(shipper.ResultFail, shipper.CompletionAborted, shipper.RunPreempted, "run "+queue[at].Name+" preempted it")
	return true
}
