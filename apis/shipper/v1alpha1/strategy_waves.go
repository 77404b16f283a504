// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "slices"

// hasOnlyWaves reports whether a strategy has waves and no steps, as that of resources.
func (s *RolloutStrategy) hasOnlyWaves() bool { return len(s.Steps) == 0 && len(s.Waves) > 0 }

// IsAutomatic reports whether Shipper begins each wave by itself.
func (s *RolloutStrategy) IsAutomatic() bool {
	return s != nil && (s.Advance == AdvanceAutomatic || s.Advance == "" && s.hasOnlyWaves())
}

// AfterTasksAllowServiceAccounts is the field of a wave by which messages name WaveTasks.AllowServiceAccounts.
const AfterTasksAllowServiceAccounts = "afterTasks.allowServiceAccounts"

// afterTasksAt are the tasks that a position waits for: those of its wave at the last step, unless it is the last wave; nil if there are none.
func (s *RolloutStrategy) afterTasksAt(wave, step int32) *WaveTasks {
	if s == nil || step != s.LastStep() || wave < 0 || int(wave) >= len(s.Waves)-1 {
		return nil
	}
	return s.Waves[wave].AfterTasks
}

// StepAt is a step as it is in a wave: the last one has the afterTasks of the wave. Nil if there is no such step. Without waves, wave is 0.
// Waves of resources have one step, 0, which asks for nothing else.
func (s *RolloutStrategy) StepAt(wave, step int32) *RolloutStrategyStep {
	if s == nil || step < 0 || int(step) >= len(s.Steps) && (!s.hasOnlyWaves() || step > 0) {
		return nil
	}
	at := &RolloutStrategyStep{}
	if len(s.Steps) > 0 {
		at = &s.Steps[step]
	}
	tasks := s.afterTasksAt(wave, step)
	if tasks == nil {
		return at
	}
	out := at.DeepCopy()
	for _, condition := range tasks.Conditions {
		if !slices.Contains(out.ReadinessGates, condition) {
			out.ReadinessGates = append(out.ReadinessGates, condition)
		}
	}
	if tasks.Approvals > 0 {
		out.Gate = &StepGate{Approvals: tasks.Approvals, AllowServiceAccounts: tasks.AllowServiceAccounts}
	}
	return out
}

// WaitAt is how long a position waits once its clusters have what it asks for; empty if it does not.
func (s *RolloutStrategy) WaitAt(wave, step int32) Duration {
	tasks := s.afterTasksAt(wave, step)
	if tasks == nil {
		return ""
	}
	return tasks.Wait
}

// AllowServiceAccountsAt is the field by which a position allows ServiceAccounts to ask for what others approve, for messages.
func (s *RolloutStrategy) AllowServiceAccountsAt(wave, step int32) string {
	if s.afterTasksAt(wave, step) != nil {
		return AfterTasksAllowServiceAccounts
	}
	return GateAllowServiceAccounts
}

// LastWave is the index of the last wave; 0 where there are none.
func (s *RolloutStrategy) LastWave() int32 {
	if s == nil {
		return 0
	}
	return max(int32(len(s.Waves))-1, 0)
}
