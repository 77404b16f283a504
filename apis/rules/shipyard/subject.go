// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// configurationChange is the space of data with the values that a deployment writes, as Keptn has it.
const configurationChange = "configurationChange"

// Subject is a digest of what the next deployment of the run would write: the version of the chart with the digest of its archive, and
// values. Approvals are bound to it, so that exactly the approved version is deployed.
func Subject(run *shipper.SequenceRun) string {
	raw, err := json.Marshal(struct {
		Version shipper.RunVersion
		Values  shipper.FreeForm
	}{VersionOf(run), ValuesOf(run)})
	if err != nil {
		return "" // data came from JSON
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// ValuesOf are the values that the deployment under way, or else the next one, writes: those of its properties, and over them
// data.configurationChange.values.
func ValuesOf(run *shipper.SequenceRun) shipper.FreeForm {
	data := DataOf(run)
	var out any
	if task := deploymentOf(run); task != nil {
		out = valuesIn(map[string]any(task.Properties))
	}
	if change, is := data[configurationChange].(map[string]any); is {
		out = merged(out, any(valuesIn(change)))
	}
	values, _ := out.(map[string]any)
	if len(values) == 0 {
		return nil
	}
	return values
}

// valuesIn is a copy of the values of a space; an empty map if it has none.
func valuesIn(space map[string]any) map[string]any {
	values, _ := space["values"].(map[string]any)
	if values == nil {
		return map[string]any{}
	}
	return shipper.FreeForm(values).DeepCopy()
}

// deploymentOf is the deployment under way, or else the next one; nil if there is none.
func deploymentOf(run *shipper.SequenceRun) *shipper.Task {
	sequence := OwnSequence(run)
	if sequence == nil {
		return nil
	}
	begin := len(run.Status.Tasks)
	if begin > 0 && run.Status.Tasks[begin-1].State == shipper.TaskTriggered {
		begin--
	}
	for i := begin; i < len(sequence.Tasks); i++ {
		if sequence.Tasks[i].Name == TaskDeployment {
			return &sequence.Tasks[i]
		}
	}
	return nil
}
