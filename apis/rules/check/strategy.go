// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Counts reports whether a strategy has a check that counts: one that fails fails the rollout.
func Counts(s *shipper.RolloutStrategy) bool {
	if s == nil {
		return false
	}
	counts := func(c shipper.StepCheck) bool { return !c.DryRun }
	for i := range s.Steps {
		if slices.ContainsFunc(s.ChecksAt(int32(i)), counts) {
			return true
		}
	}
	return slices.ContainsFunc(s.Waves, func(w shipper.Wave) bool {
		return w.AfterTasks != nil && slices.ContainsFunc(w.AfterTasks.Checks, counts)
	})
}
