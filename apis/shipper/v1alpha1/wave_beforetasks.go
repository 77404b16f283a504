// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "slices"

// BeforeTasksAllowServiceAccounts is the field of a wave by which messages name WaveTasks.AllowServiceAccounts.
const BeforeTasksAllowServiceAccounts = "beforeTasks.allowServiceAccounts"

// BeforeTasksAt are the tasks that keep a position from being achieved, and the clusters of its wave from changing: those of the wave at its
// first step; nil if there are none.
func (s *RolloutStrategy) BeforeTasksAt(wave, step int32) *WaveTasks {
	if s == nil || step != 0 || wave < 0 || int(wave) >= len(s.Waves) {
		return nil
	}
	return s.Waves[wave].BeforeTasks
}

// GatedIn reports whether a step of a wave has a gate: its own, or because the wave has beforeTasks, which hold its first step. Without
// waves, wave is 0.
func (s *RolloutStrategy) GatedIn(wave, step int32) bool {
	return s.Gated(step) || s.BeforeTasksAt(wave, step) != nil
}

// AwaitsBeginning reports whether a wave waits for the approvals by which it begins. p may be nil.
func (p *ReleaseProgress) AwaitsBeginning() bool {
	return p != nil && p.BeforeApprovals != nil && !p.BeforeApprovals.Enough(p.BeforeApprovals.Required)
}

// AsksForApprovals reports whether a step or a wave of the strategy has to be approved.
func (s *RolloutStrategy) AsksForApprovals() bool {
	return s != nil && (slices.ContainsFunc(s.Steps, func(step RolloutStrategyStep) bool { return step.RequiredApprovals() > 0 }) ||
		slices.ContainsFunc(s.Waves, Wave.asksForApprovals))
}

// asksForApprovals reports whether a wave has to be approved before it begins, or at its end.
func (w Wave) asksForApprovals() bool {
	return w.AfterTasks != nil && w.AfterTasks.Approvals > 0 || w.BeforeTasks != nil && w.BeforeTasks.Approvals > 0
}
