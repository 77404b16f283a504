// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "strings"

// ChecksAt are the checks that are made at a step: its own, and those of the strategy where the contender has traffic and another step
// follows.
func (s *RolloutStrategy) ChecksAt(step int32) []StepCheck {
	if s == nil || step < 0 || int(step) >= len(s.Steps) {
		return nil
	}
	own := s.Steps[step].Checks
	if len(s.Checks) == 0 || s.Steps[step].Traffic.Contender == 0 || step == s.LastStep() {
		return own
	}
	return append(append([]StepCheck{}, own...), s.Checks...)
}

// AllChecks are the checks that the strategy names anywhere.
func (s *RolloutStrategy) AllChecks() []StepCheck {
	if s == nil {
		return nil
	}
	out := append([]StepCheck{}, s.Checks...)
	for i := range s.Steps {
		out = append(out, s.Steps[i].Checks...)
	}
	return out
}

// HasChecks reports whether any step has checks.
func (s *RolloutStrategy) HasChecks() bool {
	if s == nil {
		return false
	}
	for i := range s.Steps {
		if len(s.ChecksAt(int32(i))) > 0 {
			return true
		}
	}
	return false
}

// Gated reports whether a step has a gate: its own, or because it has checks that count. The last step has none.
func (s *RolloutStrategy) Gated(step int32) bool {
	if s == nil || step < 0 || int(step) >= len(s.Steps)-1 {
		return false
	}
	if s.Steps[step].Gate != nil {
		return true
	}
	for _, c := range s.ChecksAt(step) {
		if !c.DryRun {
			return true
		}
	}
	return false
}

// NameInStep is the name of the check in statuses.
func (c StepCheck) NameInStep() string {
	if c.Name != "" {
		return c.Name
	}
	return c.Check[strings.LastIndex(c.Check, "/")+1:]
}
