// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"slices"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Claim is what the task under way of a run writes beside a template, and what the Release that is made of it has.
func Claim(run *shipper.SequenceRun) shipper.RunClaim {
	out := shipper.RunClaim{
		Namespace: run.Namespace, Run: run.Name, UID: string(run.UID), Requesters: Requesters(run),
	}
	task := UnderWay(run)
	if task == nil {
		return out
	}
	out.EventID = task.EventID
	out.Hold = StopsFirst(run, task)
	return out
}

// StopsFirst reports whether a deployment ends at the first step, because a task release comes after it.
func StopsFirst(run *shipper.SequenceRun, task *shipper.TaskStatus) bool {
	sequence := OwnSequence(run)
	if sequence == nil {
		return false
	}
	at := TaskIndex(sequence, NameOf(task))
	if at >= 0 && sequence.Tasks[at].Properties["to"] == "last" {
		return false
	}
	return slices.ContainsFunc(sequence.Tasks[at+1:], func(t shipper.Task) bool { return t.Name == TaskRelease })
}

// LeftHeld is the Release, as NAMESPACE/NAME, that a finished run has left held for its task release; empty if it has left none, or if a
// run follows that takes it back.
func LeftHeld(run *shipper.SequenceRun) string {
	left := ""
	for i := range run.Status.Tasks {
		switch task := &run.Status.Tasks[i]; {
		case task.Name == TaskDeployment && task.Release != "" && StopsFirst(run, task):
			left = task.Release
		case task.Release != "" && (task.Name == TaskRelease || task.Name == TaskRollback):
			left = ""
		}
	}
	takenBack := slices.ContainsFunc(run.Status.Triggered, func(t shipper.TriggeredRun) bool { return t.TakesBack && !t.Refused })
	if !IsFinished(run) || takenBack {
		return ""
	}
	return left
}

// Template is a template with the version, the values and the strategy of a run: what its deployment under way writes. It changes nothing.
func Template(run *shipper.SequenceRun, of *shipper.ReleaseEnvironment) *shipper.ReleaseEnvironment {
	out := of.DeepCopy()
	if v := VersionOf(run).Version; v != "" {
		out.Chart.Version = v
	}
	if values := ValuesOf(run); values != nil {
		var is map[string]any
		if out.Values != nil {
			is = *out.Values
		}
		all := shipper.ChartValues(Over(is, values))
		out.Values = &all
	}
	if steps := Steps(run); steps != nil {
		if out.Strategy == nil {
			out.Strategy = &shipper.RolloutStrategy{}
		}
		out.Strategy.Steps, out.Strategy.From = steps, nil
	}
	return out
}

// Over is b over a; maps are merged, all else is replaced. It changes neither.
func Over(a, b map[string]any) shipper.FreeForm {
	below := map[string]any(shipper.FreeForm(a).DeepCopy())
	if below == nil {
		below = map[string]any{}
	}
	out, _ := merged(below, map[string]any(shipper.FreeForm(b).DeepCopy())).(map[string]any)
	return out
}

// Steps are those of Keptn's property deploymentstrategy of the deployment under way; nil for those of the Application.
func Steps(run *shipper.SequenceRun) []shipper.RolloutStrategyStep {
	const all = 100
	step := func(name string, contender, incumbent, traffic int32) shipper.RolloutStrategyStep {
		return shipper.RolloutStrategyStep{
			Name:     name,
			Capacity: shipper.RolloutStrategyStepValue{Contender: contender, Incumbent: incumbent},
			Traffic:  shipper.RolloutStrategyStepValue{Contender: traffic, Incumbent: all - traffic},
		}
	}
	task := deploymentOf(run)
	if task == nil {
		return nil
	}
	switch task.Properties["deploymentstrategy"] {
	case "direct":
		return []shipper.RolloutStrategyStep{step("full on", all, 0, all)}
	case "blue_green", "blue_green_service":
		return []shipper.RolloutStrategyStep{step("green", all, all, 0), step("full on", all, 0, all)}
	}
	return nil
}
