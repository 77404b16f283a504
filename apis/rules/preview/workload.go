// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"

	"shipper.dev/shipper/apis/rules/inplace"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Workload is one of a chart whose objects are named by Application.
type Workload struct {
	Kind string `json:"kind"`
	// Name is the one that the chart gives.
	Name string `json:"name"`
	// InPlace is true if it exists once, and changes at its step.
	InPlace bool `json:"inPlace,omitempty"`
	// Replicas is the number of Pods at full capacity of a Deployment or StatefulSet.
	Replicas int32 `json:"replicas,omitempty"`
}

// String names it as kubectl users know it.
func (w Workload) String() string { return w.Kind + " " + w.Name }

// Lot says, for a user, what becomes of it, and at which step of a strategy.
func (w Workload) Lot(s *shipper.RolloutStrategy) string {
	first := w.step(s, func(percent int32) bool { return strategy.Pods(w.Replicas, percent) > 0 })
	whole := w.step(s, inplace.Whole)
	switch {
	case w.Kind == "Job":
		return "run once, when the Release is installed"
	case !w.InPlace && first == "":
		return "side by side"
	case !w.InPlace:
		return "side by side from " + first + " on"
	case whole == "" && (w.Kind != "StatefulSet" || first == ""):
		return "in place, at none of these steps"
	case whole == "":
		return "in place from " + first + " on"
	case w.Kind != "StatefulSet" || first == "" || first == whole:
		return "in place at " + whole
	default:
		return "in place from " + first + " on, all of it at " + whole
	}
}

// step names the first step whose capacity of the contender does something; empty if none does.
func (w Workload) step(s *shipper.RolloutStrategy, does func(percent int32) bool) string {
	if s == nil {
		return ""
	}
	for i, step := range s.Steps {
		if does(step.Capacity.Contender) {
			return fmt.Sprintf("step %d (%s)", i, step.Name)
		}
	}
	return ""
}
