// SPDX-License-Identifier: Apache-2.0

package file

import (
	"strconv"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// The names that the specification's migration gives.
const (
	delivery    = "artifact-delivery"
	rollback    = "rollback"
	remediation = "remediation"
)

// Deployment strategies of 0.2.
const (
	blueGreen   = "blue_green"
	userManaged = "user_managed"
)

// migrate does what the specification's example shows (K20), without its two mistakes: a stage follows the one before it in the file, and
// takes itself back.
func (r *reader) migrate(path string, all []any) []shipper.Stage {
	var out []shipper.Stage
	before := ""
	for i, raw := range all {
		at := path + "[" + strconv.Itoa(i) + "]"
		of := r.object(at, raw, "name", "deployment_strategy", "test_strategy", "remediation_strategy", "approval_strategy")
		if of == nil {
			continue
		}
		stage := r.oldStage(at, of, before)
		before = stage.Name
		out = append(out, stage)
	}
	if len(out) > 1 {
		r.note(path, "each stage follows the one before it in the file, as 0.1.x did without saying so")
	}
	return out
}

func (r *reader) oldStage(at string, of map[string]any, before string) shipper.Stage {
	out := shipper.Stage{Name: r.text(at+".name", of["name"])}
	strategy, test := r.strategy(at+".deployment_strategy", of["deployment_strategy"]), r.text(at+".test_strategy", of["test_strategy"])
	deliver := shipper.Sequence{Name: delivery}
	if before != "" {
		deliver.TriggeredOn = []shipper.Trigger{{Event: before + "." + delivery + finished}}
	}
	if asks := r.approval(at+".approval_strategy", of["approval_strategy"]); asks != nil {
		deliver.Tasks = append(deliver.Tasks, *asks)
	}
	deliver.Tasks = append(deliver.Tasks, task("deployment", "deploymentstrategy", strategy))
	if test != "" {
		deliver.Tasks = append(deliver.Tasks, task("test", "teststrategy", test), shipper.Task{Name: "evaluation"})
	}
	deliver.Tasks = append(deliver.Tasks, shipper.Task{Name: "release"})
	out.Sequences = append(out.Sequences, deliver)
	if strategy == blueGreen && test != "" {
		out.Sequences = append(out.Sequences, shipper.Sequence{
			Name: rollback, Tasks: []shipper.Task{{Name: "rollback"}}, TriggeredOn: []shipper.Trigger{{
				Event:    out.Name + "." + delivery + finished,
				Selector: &shipper.TriggerSelector{Match: map[string]string{"result": "fail"}},
			}},
		})
	}
	switch value := r.text(at+".remediation_strategy", of["remediation_strategy"]); value {
	case "automated":
		out.Sequences = append(out.Sequences, shipper.Sequence{
			Name: remediation, Tasks: []shipper.Task{{Name: "remediation"}, task("test", "teststrategy", "real_user"), {Name: "evaluation"}},
			TriggeredOn: []shipper.Trigger{{Event: out.Name + ".problem.open"}, {Event: out.Name + ".remediation.in-progress"}},
		})
	case "":
	default:
		r.note(at+".remediation_strategy", "%q is not automated, and is left out", value)
	}
	return out
}

// approval is the task of an approval_strategy; nil if there is none.
func (r *reader) approval(at string, raw any) *shipper.Task {
	of := r.object(at, raw, "pass", "warning")
	if of == nil {
		return nil
	}
	out := &shipper.Task{Name: "approval", Properties: shipper.FreeForm{}}
	for _, name := range []string{"pass", "warning"} {
		if value := r.text(at+"."+name, of[name]); value != "" {
			out.Properties[name] = value
		}
	}
	return out
}

// strategy is the deployment strategy by its new name.
func (r *reader) strategy(at string, raw any) string {
	switch value := r.text(at, raw); value {
	case "direct", "":
		return "direct"
	case "blue_green_service", blueGreen:
		return blueGreen
	case userManaged:
		return userManaged
	default:
		r.note(at, "%q is not direct or blue_green_service, and is %s here: the steps that the Application has", value, userManaged)
		return userManaged
	}
}

func task(name, property, value string) shipper.Task {
	return shipper.Task{Name: name, Properties: shipper.FreeForm{property: value}}
}
