// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"
	"strings"
)

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

// ChecksIn are the checks that are made at a step of a wave: ChecksAt and, at the last step, those of the wave's afterTasks. Without waves,
// wave is 0.
func (s *RolloutStrategy) ChecksIn(wave, step int32) []StepCheck {
	checks, tasks := s.ChecksAt(step), s.afterTasksAt(wave, step)
	if tasks == nil || len(tasks.Checks) == 0 {
		return checks
	}
	return slices.Concat(checks, tasks.Checks)
}

// ChecksLast is how long checks of a step of a wave measure that do not say it: as long as the step lasts, or the wave waits.
func (s *RolloutStrategy) ChecksLast(wave, step int32) Duration {
	if wait := s.WaitAt(wave, step); wait != "" {
		return wait
	}
	if int(step) >= len(s.Steps) { // resources have no steps
		return ""
	}
	return s.Steps[step].After
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
	return append(out, s.waveChecks()...)
}

// waveChecks are the checks of all afterTasks.
func (s *RolloutStrategy) waveChecks() []StepCheck {
	var out []StepCheck
	for _, wave := range s.Waves {
		if wave.AfterTasks != nil {
			out = append(out, wave.AfterTasks.Checks...)
		}
	}
	return out
}

// HasChecks reports whether any step or wave has checks.
func (s *RolloutStrategy) HasChecks() bool {
	if s == nil {
		return false
	}
	for i := range s.Steps {
		if len(s.ChecksAt(int32(i))) > 0 {
			return true
		}
	}
	return len(s.waveChecks()) > 0
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
