// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TaskIndex is the index of a task that is named as test, or as test#2 for the second test; -1 if there is none.
func TaskIndex(of *shipper.Sequence, name string) int {
	seen := map[string]int32{}
	for i := range of.Tasks {
		seen[of.Tasks[i].Name]++
		is := shipper.TaskStatus{Name: of.Tasks[i].Name, Ordinal: seen[of.Tasks[i].Name]}
		if NameOf(&is) == name {
			return i
		}
	}
	return -1
}

// WasRefused reports whether a run ended because what it requests was not possible. It is not to be repeated.
func WasRefused(run *shipper.SequenceRun) bool {
	end := shipper.FindCondition(run.Status.Conditions, shipper.RunFinished)
	return IsFinished(run) && end.Reason == shipper.RunRefused
}

// NotAgain says why a run cannot be repeated; empty if it can. from is the task to begin with, or empty, by is the retry, and known are the
// runs of the Shipyard.
func NotAgain(run *shipper.SequenceRun, from string, by types.UID, known []*shipper.SequenceRun) string {
	sequence := OwnSequence(run)
	switch {
	case WasRefused(run):
		return "run " + run.Name + " was refused before it began: create a run without retryOf"
	case from == "" && run.Status.Result == shipper.ResultPass:
		return "run " + run.Name + " has passed: name the task to do again in spec.retryOf.from"
	case from == "" || sequence == nil:
		return ""
	}
	if why := notFrom(run, sequence, from); why != "" {
		return why
	}
	if !CarriesApproval(run, from) {
		return ""
	}
	if used := run.Status.RepeatedBy; used != nil && used.UID != string(by) {
		return "run " + used.Name + " repeated it, and what was approved is done once, also when that one was deleted: begin with the approval"
	}
	for _, other := range known {
		if of := other.Spec.RetryOf; of != nil && of.Run == run.Name && other.Status.StartTime != nil && other.UID != by {
			return "run " + other.Name + " repeats it, and what was approved is done once: repeat that one, or begin with the approval"
		}
	}
	return ""
}

// CarriesApproval reports whether a retry of a run that begins with a task keeps an approval of that run.
func CarriesApproval(run *shipper.SequenceRun, from string) bool {
	sequence := OwnSequence(run)
	if from == "" || sequence == nil {
		return false
	}
	before := run.Status.Tasks[:min(max(TaskIndex(sequence, from), 0), len(run.Status.Tasks))]
	return slices.ContainsFunc(before, func(t shipper.TaskStatus) bool { return t.Name == TaskApproval })
}

// MadeFrom is the Release that a run has made, or made the newest, from a task on; empty if none.
func MadeFrom(run *shipper.SequenceRun, from string) string {
	sequence := OwnSequence(run)
	if sequence == nil {
		return ""
	}
	made := ""
	for _, t := range run.Status.Tasks[min(max(TaskIndex(sequence, from), 0), len(run.Status.Tasks)):] {
		if t.Name == TaskDeployment && t.Release != "" {
			made = t.Release
		}
	}
	return made
}

// notFrom says why a retry of a run cannot begin with a task; empty if it can. The tasks before it keep their results.
func notFrom(run *shipper.SequenceRun, of *shipper.Sequence, name string) string {
	at := TaskIndex(of, name)
	if at < 0 || at > len(run.Status.Tasks) {
		return "run " + run.Name + " did not come to it"
	}
	written := slices.IndexFunc(run.Status.Tasks[at:], func(t shipper.TaskStatus) bool {
		return writes(t.Name) && (t.Result == shipper.ResultPass || t.Result == shipper.ResultWarning)
	})
	for i := range run.Status.Tasks[:at] {
		if run.Status.Tasks[i].Name == TaskApproval && written >= 0 {
			return fmt.Sprintf("task %s of run %s has done what was approved, and the approval must be given again: begin with %s",
				NameOf(&run.Status.Tasks[at+written]), run.Name, NameOf(&run.Status.Tasks[i]))
		}
		if task := &run.Status.Tasks[i]; task.Result == shipper.ResultFail && !isFor(&of.Tasks[at], true) {
			return "task " + NameOf(task) + " before it failed: begin with that one"
		}
	}
	return ""
}

// writes reports whether a task changes what serves.
func writes(task string) bool {
	return task == TaskDeployment || task == TaskRelease || task == TaskRollback
}
