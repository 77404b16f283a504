// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"encoding/json"
	"fmt"
	"strconv"

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
// megabyte. Code that starts, retries or follows a run reads it from the API server. Bytes stay known of a run that is not finished.
func Strip(run *shipper.SequenceRun) {
	if n := Bytes(run); n > 0 && !IsFinished(run) {
		if run.Annotations == nil {
			run.Annotations = map[string]string{}
		}
		run.Annotations[bytesAnnotation] = strconv.Itoa(n)
	}
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

// bytesAnnotation has the bytes of the data of a run in caches, where Strip removes the data. It is never written,
// and no user writes it: API servers refuse keys with blanks.
const bytesAnnotation = "bytes of the data"

// Bytes are those of the data of a run, whole or as Strip leaves it.
func Bytes(run *shipper.SequenceRun) int {
	n := 0
	for _, data := range []shipper.FreeForm{run.Spec.Data, run.Status.Data} {
		if len(data) > 0 {
			text, _ := json.Marshal(data) // it was JSON
			n += len(text)
		}
	}
	if n == 0 {
		n, _ = strconv.Atoi(run.Annotations[bytesAnnotation])
	}
	return n
}

// MaxUnfinishedBytes bounds the data of the unfinished runs of a namespace together.
const MaxUnfinishedBytes = 16 << 20

// TooLarge says that a new run exceeds the bound, among the runs of its namespace; empty if it does not.
func TooLarge(run *shipper.SequenceRun, known []*shipper.SequenceRun) string {
	mine := Bytes(run)
	if mine == 0 {
		return ""
	}
	others := 0
	for _, other := range known {
		if !IsFinished(other) {
			others += Bytes(other)
		}
	}
	if others+mine <= MaxUnfinishedBytes {
		return ""
	}
	return fmt.Sprintf("the runs of namespace %s that are not finished have %d KiB of data, this one has %d KiB, and together they may have "+
		"%d KiB: wait, abort some, or give less data", run.Namespace, others>>10, mine>>10, MaxUnfinishedBytes>>10)
}
