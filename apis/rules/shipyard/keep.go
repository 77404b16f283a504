// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// OwnTasks is the snapshot of a run, which has one, with its own sequence alone, of which the tasks have only names: what other runs are
// judged by. It shares nothing with the run.
func OwnTasks(run *shipper.SequenceRun) *shipper.ShipyardSnapshot {
	was := run.Spec.Snapshot
	out := &shipper.ShipyardSnapshot{UID: was.UID, Generation: was.Generation, ServiceAccountName: was.ServiceAccountName}
	stage, sequence := OfStage(was, run.Spec.Stage), SequenceOf(was, run.Spec.Stage, run.Spec.Sequence)
	if stage == nil || sequence == nil {
		return out
	}
	own := shipper.Sequence{Name: sequence.Name, WhenBusy: sequence.WhenBusy, Tasks: make([]shipper.Task, len(sequence.Tasks))}
	for i := range sequence.Tasks {
		own.Tasks[i].Name = sequence.Tasks[i].Name
	}
	out.Stages = []shipper.Stage{{Name: stage.Name, MaxConcurrency: stage.MaxConcurrency, Sequences: []shipper.Sequence{own}}}
	return out
}

// IsUnderWay reports whether a run has begun and not finished.
func IsUnderWay(run *shipper.SequenceRun) bool {
	return run.Status.StartTime != nil && !IsFinished(run)
}

// Strip removes from a run what no other run is judged by: data, messages, and all of the snapshot but the names of its own tasks. That may
// be a megabyte. Code that starts, retries or follows a run reads it from the API server.
func Strip(run *shipper.SequenceRun) {
	run.Spec.Data, run.Status.Data = nil, nil
	for i := range run.Status.Tasks {
		run.Status.Tasks[i].Message, run.Status.Tasks[i].Approvals = "", nil
	}
	for i := range run.Status.Triggered {
		run.Status.Triggered[i].Message = ""
	}
	if run.Spec.Snapshot != nil {
		run.Spec.Snapshot = OwnTasks(run)
	}
}
