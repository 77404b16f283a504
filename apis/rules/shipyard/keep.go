// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// ownTasks is what a run does by the names of its tasks alone, and where: what other runs are judged by. It shares nothing with was.
func ownTasks(was *shipper.ResolvedRun) *shipper.ResolvedRun {
	tasks := make([]shipper.Task, len(was.Sequence.Tasks))
	for i := range was.Sequence.Tasks {
		tasks[i].Name = was.Sequence.Tasks[i].Name
	}
	return &shipper.ResolvedRun{
		Revision: was.Revision, ServiceAccountName: was.ServiceAccountName, Version: was.Version, Context: was.Context,
		Stage:    shipper.Stage{Name: was.Stage.Name, MaxConcurrency: was.Stage.MaxConcurrency},
		Sequence: shipper.Sequence{Name: was.Sequence.Name, WhenBusy: was.Sequence.WhenBusy, Tasks: tasks},
	}
}

// IsUnderWay reports whether a run has begun and not finished.
func IsUnderWay(run *shipper.SequenceRun) bool {
	return run.Status.StartTime != nil && !IsFinished(run)
}

// Strip removes from a run what no other run is judged by: data, messages, and all of its tasks but their names. That may be half a
// megabyte. Code that starts, retries or follows a run reads it from the API server.
func Strip(run *shipper.SequenceRun) {
	run.Spec.Data, run.Status.Data = nil, nil
	for i := range run.Status.Tasks {
		run.Status.Tasks[i].Message, run.Status.Tasks[i].Approvals = "", nil
	}
	for i := range run.Status.Triggered {
		run.Status.Triggered[i].Message = ""
	}
	if run.Status.Resolved != nil {
		run.Status.Resolved = ownTasks(run.Status.Resolved)
	}
}
