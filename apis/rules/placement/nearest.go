// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// maxRegionName bounds, in bytes, the names that are compared: the comparison takes time in proportion to the product of the lengths.
const maxRegionName = 253

// suggestion names the region that name is probably a misspelling of; empty when a Cluster has the region name, or none is near.
func suggestion(name string, clusters []shipper.Cluster) string {
	nearest, best := "", min(len(name), maxRegionName)/3+1
	for i := range clusters {
		region := clusters[i].Spec.Region
		if region == name {
			return ""
		}
		if d := distance(name, region); d < best || d == best && nearest != "" && region < nearest {
			nearest, best = region, d
		}
	}
	if nearest == "" {
		return ""
	}
	return fmt.Sprintf(" (no cluster has this region; did you mean %q?)", nearest)
}

// distance is the number of bytes to insert, delete or replace to turn a into b.
func distance(a, b string) int {
	a, b = a[:min(len(a), maxRegionName)], b[:min(len(b), maxRegionName)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
