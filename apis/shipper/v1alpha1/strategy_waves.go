// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// hasOnlyWaves reports whether a strategy has waves and no steps, as that of resources.
func (s *RolloutStrategy) hasOnlyWaves() bool { return len(s.Steps) == 0 && len(s.Waves) > 0 }

// IsAutomatic reports whether Shipper begins each wave by itself.
func (s *RolloutStrategy) IsAutomatic() bool {
	return s != nil && (s.Advance == AdvanceAutomatic || s.Advance == "" && s.hasOnlyWaves())
}
