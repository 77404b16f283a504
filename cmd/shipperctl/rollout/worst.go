// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxRows is how many clusters a screen shows; of more than that it shows the worst, and counts the others.
const maxRows = 20

// concern says how much a cluster needs a look: the least first.
func (c *Cluster) concern() int {
	switch {
	case len(c.Notes) > 0:
		return 0
	case c.Contender.Ready < c.Contender.Wanted:
		return 1
	case c.Moving:
		return 2
	case c.Contender.asFound || c.Contender.Wanted == 0:
		return 4
	}
	return 3
}

// concerns are what the numbers of concern mean, for the count of the clusters that are not shown.
var concerns = [...]string{"with problems", "lack pods", "moving traffic", "as the step has them", "without pods of the contender"}

// worst are the clusters that a screen shows, those first that need a look, and a line that counts the others; it is empty when all are
// shown.
func worst(all []Cluster) (shown []Cluster, rest string) {
	if len(all) <= maxRows {
		return all, ""
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b Cluster) int { return cmp.Compare(a.concern(), b.concern()) })
	var counts [len(concerns)]int
	for _, c := range sorted[maxRows:] {
		counts[c.concern()]++
	}
	var parts []string
	for i, n := range counts {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, concerns[i]))
		}
	}
	return sorted[:maxRows], fmt.Sprintf("and %d more clusters: %s. All of them: -o json", len(sorted)-maxRows, strings.Join(parts, ", "))
}
