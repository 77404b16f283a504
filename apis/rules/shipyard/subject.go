// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// configurationChange is the space of data whose values a deployment writes into the Application, as Keptn has it.
const configurationChange = "configurationChange"

// Subject is a digest of what a deployment of the run would write now: the version of the chart with the digest of its archive, and values.
// Approvals are bound to it: what is approved is what is deployed.
func Subject(run *shipper.SequenceRun) string {
	raw, err := json.Marshal(struct {
		Version shipper.RunVersion
		Values  shipper.FreeForm
	}{run.Spec.Version, ValuesOf(run)})
	if err != nil {
		return "" // data came from JSON
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// ValuesOf are the values that a deployment of the run writes: data.configurationChange.values, and over it data.deployment.values.
func ValuesOf(run *shipper.SequenceRun) shipper.FreeForm {
	data := run.Status.Data
	if data == nil {
		data = run.Spec.Data
	}
	var out any
	for _, space := range []string{configurationChange, TaskDeployment} {
		if from, is := data[space].(map[string]any); is {
			if values, has := from["values"].(map[string]any); has {
				out = merged(out, map[string]any(shipper.FreeForm(values).DeepCopy()))
			}
		}
	}
	values, _ := out.(map[string]any)
	return values
}
