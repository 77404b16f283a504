// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"fmt"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Traffic is the share that a target requests of what all targets of its Application request, as 50 %; two bounds where clusters differ.
// It is empty while the target has no clusters.
func Traffic(target *shipper.TrafficTarget, all []*shipper.TrafficTarget) string {
	if target == nil || len(target.Spec.Clusters) == 0 {
		return ""
	}
	sums := map[string]uint64{}
	for _, tt := range all {
		if tt == nil {
			continue
		}
		for _, c := range tt.Spec.Clusters {
			sums[c.Name] += uint64(c.Weight)
		}
	}
	least, most := uint64(100), uint64(0)
	for _, c := range target.Spec.Clusters {
		share := uint64(0)
		if sum := sums[c.Name]; sum > 0 {
			share = (uint64(c.Weight)*100 + sum/2) / sum
		}
		least, most = min(least, share), max(most, share)
	}
	if least == most {
		return fmt.Sprintf("%d %%", least)
	}
	return fmt.Sprintf("%d-%d %%", least, most)
}
