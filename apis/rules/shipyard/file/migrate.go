// SPDX-License-Identifier: Apache-2.0

package file

import (
	"errors"
	"fmt"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// The names that the specification's migration gives.
const (
	delivery    = "artifact-delivery"
	rollback    = "rollback"
	remediation = "remediation"
)

// older is a file of 0.1.x.
type older struct {
	Version    string     `json:"version"`
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Metadata   metadata   `json:"metadata"`
	Stages     []oldStage `json:"stages"`
}

type oldStage struct {
	Name        string `json:"name"`
	Deployment  string `json:"deployment_strategy"`
	Test        string `json:"test_strategy"`
	Remediation string `json:"remediation_strategy"`
	Approval    *struct {
		Pass    string `json:"pass"`
		Warning string `json:"warning"`
	} `json:"approval_strategy"`
}

// migrate does what the specification's example shows (K20), without its two mistakes: a stage follows the one before it in the file, and
// takes itself back.
func (f *older) migrate() (Shipyard, error) {
	if len(f.Stages) == 0 {
		return Shipyard{}, errors.New("stages: a shipyard has at least one stage")
	}
	out := Shipyard{Name: f.Metadata.Name}
	before := ""
	for i := range f.Stages {
		stage, err := f.Stages[i].migrate(before)
		if err != nil {
			return Shipyard{}, fmt.Errorf("stages[%d]%w", i, err)
		}
		out.Spec.Stages = append(out.Spec.Stages, stage)
		before = f.Stages[i].Name
	}
	if len(f.Stages) > 1 {
		out.note("each stage follows the one before it in the file, as 0.1.x did without saying so")
	}
	return out, nil
}

func (s *oldStage) migrate(before string) (shipper.Stage, error) {
	out := shipper.Stage{Name: s.Name}
	strategy, err := s.strategy()
	if err != nil {
		return out, err
	}
	deliver := shipper.Sequence{Name: delivery}
	if before != "" {
		deliver.TriggeredOn = []shipper.Trigger{{Event: before + "." + delivery + ".finished"}}
	}
	if s.Approval != nil {
		asks := shipper.Task{Name: "approval", Properties: shipper.FreeForm{}}
		for name, value := range map[string]string{"pass": s.Approval.Pass, "warning": s.Approval.Warning} {
			if value != "" {
				asks.Properties[name] = value
			}
		}
		deliver.Tasks = append(deliver.Tasks, asks)
	}
	deliver.Tasks = append(deliver.Tasks, task("deployment", "deploymentstrategy", strategy))
	if s.Test != "" {
		deliver.Tasks = append(deliver.Tasks, task("test", "teststrategy", s.Test), shipper.Task{Name: "evaluation"})
	}
	deliver.Tasks = append(deliver.Tasks, shipper.Task{Name: "release"})
	out.Sequences = append(out.Sequences, deliver)
	if strategy == "blue_green" && s.Test != "" {
		out.Sequences = append(out.Sequences, shipper.Sequence{
			Name: rollback, Tasks: []shipper.Task{{Name: "rollback"}}, TriggeredOn: []shipper.Trigger{{
				Event:    s.Name + "." + delivery + ".finished",
				Selector: &shipper.TriggerSelector{Match: map[string]string{"result": "fail"}},
			}},
		})
	}
	if s.Remediation == "automated" {
		out.Sequences = append(out.Sequences, shipper.Sequence{
			Name: remediation, Tasks: []shipper.Task{{Name: "remediation"}, task("test", "teststrategy", "real_user"), {Name: "evaluation"}},
			TriggeredOn: []shipper.Trigger{{Event: s.Name + ".problem.open"}, {Event: s.Name + ".remediation.in-progress"}},
		})
	} else if s.Remediation != "" {
		return out, fmt.Errorf(".remediation_strategy: %q is not automated", s.Remediation)
	}
	return out, nil
}

// strategy is the deployment strategy by its new name.
func (s *oldStage) strategy() (string, error) {
	switch s.Deployment {
	case "direct", "":
		return "direct", nil
	case "blue_green_service", "blue_green":
		return "blue_green", nil
	}
	return "", fmt.Errorf(".deployment_strategy: %q is not direct or blue_green_service", s.Deployment)
}

func task(name, property, value string) shipper.Task {
	return shipper.Task{Name: name, Properties: shipper.FreeForm{property: value}}
}
