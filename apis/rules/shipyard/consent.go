// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"cmp"
	"fmt"
	"slices"
	"time"

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
