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
	for i := range s.Steps {
		if slices.ContainsFunc(s.ChecksAt(int32(i)), func(c shipper.StepCheck) bool { return !c.DryRun }) {
			return true
		}
	}
	return false
}
