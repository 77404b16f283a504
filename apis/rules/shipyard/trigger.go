// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// finished ends the names of events about ends.
const finished = ".finished"

// FollowUps are the runs that the end of run triggers, in the order of its Shipyard, each sequence once (KS3). run must be finished, and of
// is the revision of its Shipyard; nil if there is none.
func FollowUps(run *shipper.SequenceRun, of *shipper.ShipyardSnapshot) []shipper.TriggeredRun {
	if run.Status.Resolved == nil || of == nil {
		return nil
	}
	var out []shipper.TriggeredRun
	stages := of.Stages
	for i := range stages {
		for j := range stages[i].Sequences {
			sequence := &stages[i].Sequences[j]
			at := slices.IndexFunc(sequence.TriggeredOn, func(t shipper.Trigger) bool { return triggers(&t, run, of) })
			if at < 0 {
				continue
			}
			root := string(run.UID)
			if len(stages[i].Requires) > 0 && sequenceDeploys(sequence) && run.Spec.RetryOf == nil {
				root = run.Status.Resolved.Context // several runs may lead here: the last of them, once
			}
			out = append(out, shipper.TriggeredRun{
				Name:  followUpName(run, root, stages[i].Name, sequence.Name),
				Stage: stages[i].Name, Sequence: sequence.Name, Event: sequence.TriggeredOn[at].Event,
				TakesBack: slices.ContainsFunc(sequence.Tasks, takesBack),
			})
		}
	}
	return out
}

// MaxRunName bounds the names of runs: they are labels of their Approvals.
const MaxRunName = 63

// IsNameOfFollowUp reports whether only a run that follows may have a name: it has a dot. A user could take it in advance otherwise.
func IsNameOfFollowUp(name string) bool { return strings.Contains(name, ".") }

// followUpName is the same each time it is asked for, so that a run that follows is created once. It is of the UID of the run, or of the
// context, which all runs of a delivery share.
func followUpName(run *shipper.SequenceRun, of, stage, sequence string) string {
	const hashed = 8
	sum := sha256.Sum256([]byte(of + "/" + stage + "/" + sequence))
	name := run.Spec.Service + "-" + stage + "-" + strings.ToLower(strings.ReplaceAll(sequence, "_", "-"))
	return strings.Trim(name[:min(len(name), MaxRunName-1-hashed)], "-") + "." + hex.EncodeToString(sum[:])[:hashed]
}

// ended is how a run or a task of it ended.
type ended struct {
	result     shipper.Result
	completion shipper.Completion
}

// triggers reports whether the end of run is the event that t selects.
func triggers(t *shipper.Trigger, run *shipper.SequenceRun, of *shipper.ShipyardSnapshot) bool {
	is, ok := eventOf(t.Event, run, of)
	if !ok {
		return false
	}
	match := map[string]string{"result": string(shipper.ResultPass)} // K9, KS1: a warning triggers if it is selected
	if t.Selector != nil {
		match = t.Selector.Match
	}
	// An abort triggers nothing unless it is selected (KS13).
	aborted := is.completion == shipper.CompletionAborted || run.Status.Completion == shipper.CompletionAborted
	if aborted && match["status"] != string(shipper.CompletionAborted) {
		return false
	}
	for key, want := range match {
		if have, known := valueOf(key, run, is); !known || have != want {
			return false
		}
	}
	return len(match) > 0 // KS2
}

// eventOf is how what an event names ended in run; false if the event is another one. A sequence hides a task of the same name.
func eventOf(event string, run *shipper.SequenceRun, of *shipper.ShipyardSnapshot) (ended, bool) {
	source, is := strings.CutSuffix(event, finished)
	stage, name, named := strings.Cut(source, ".")
	if !is || !named || stage != run.Spec.Stage {
		return ended{}, false
	}
	if name == run.Spec.Sequence {
		return ended{run.Status.Result, run.Status.Completion}, true
	}
	own := OfStage(of, stage)
	if own != nil && slices.ContainsFunc(own.Sequences, func(s shipper.Sequence) bool { return s.Name == name }) {
		return ended{}, false
	}
	return lastOf(run, name)
}

// lastOf is how the last task of a name ended (K12).
func lastOf(run *shipper.SequenceRun, name string) (ended, bool) {
	for _, task := range slices.Backward(run.Status.Tasks) {
		if task.Name == name && (task.State == shipper.TaskFinished || task.State == shipper.TaskCarried) {
			return ended{task.Result, task.Completion}, true
		}
	}
	return ended{}, false
}

// valueOf is the value that a key of match has; false for a key that is none.
func valueOf(key string, run *shipper.SequenceRun, is ended) (string, bool) {
	switch key {
	case "result":
		return string(is.result), true
	case "status":
		return string(is.completion), true
	case "service":
		return run.Spec.Service, true
	}
	name, what, both := strings.Cut(key, ".")
	if !both {
		return "", false
	}
	task, known := lastOf(run, name)
	switch {
	case !known:
		return "", false
	case what == "result":
		return string(task.result), true
	case what == "status":
		return string(task.completion), true
	}
	return "", false
}

// SequenceOf is a sequence of a stage in a snapshot; nil if there is none. Each stage has evaluation (KS19).
func SequenceOf(snapshot *shipper.ShipyardSnapshot, stage, name string) *shipper.Sequence {
	if snapshot == nil {
		return nil
	}
	of := OfStage(snapshot, stage)
	if of == nil {
		return nil
	}
	sequences := of.Sequences
	for i := range sequences {
		if sequences[i].Name == name {
			return &sequences[i]
		}
	}
	if name == TaskEvaluation {
		return &shipper.Sequence{Name: TaskEvaluation, Tasks: []shipper.Task{{Name: TaskEvaluation}}}
	}
	return nil
}
