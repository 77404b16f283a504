// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"iter"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// maxCompared bounds, in bytes, the names that are compared: the comparison takes time in proportion to the product of the lengths.
const maxCompared = 253

// suggestion names the region that name is probably a misspelling of; empty when a Cluster has the region name, or none is near.
func suggestion(name string, clusters []shipper.Cluster) string {
	nearest := Nearest(name, func(yield func(string) bool) {
		for i := range clusters {
			if !yield(clusters[i].Spec.Region) {
				return
			}
		}
	})
	if nearest == "" {
		return ""
	}
	return fmt.Sprintf(" (no cluster has this region; did you mean %q?)", nearest)
}

// Nearest is the one of known that name is probably a misspelling of; empty when name is one of them, or none is near.
func Nearest(name string, known iter.Seq[string]) string {
	nearest, best := "", min(len(name), maxCompared)/3+1
	for other := range known {
		if other == name {
			return ""
		}
		if d := distance(name, other); d < best || d == best && nearest != "" && other < nearest {
			nearest, best = other, d
		}
	}
	return nearest
}

// distance is the number of bytes to insert, delete or replace to turn a into b.
func distance(a, b string) int {
	a, b = a[:min(len(a), maxCompared)], b[:min(len(b), maxCompared)]
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
