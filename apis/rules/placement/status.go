// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const (
	// maxClusters and maxExamples are the bounds of ReleasePlacement.
	maxClusters = 1000
	maxExamples = 10
	// maxNamed is how many clusters Unfulfilled names.
	maxNamed = 5
)

// Status is the decision as a Release has it: at most 1000 clusters and, for each reason, 10 examples.
func (d Decision) Status() *shipper.ReleasePlacement {
	out := &shipper.ReleasePlacement{Wanted: int32(d.Wanted), Chosen: int32(len(d.Chosen))} //nolint:gosec // counts of objects
	at := map[shipper.PlacementReason]int{}
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if v.Chosen {
			if len(out.Clusters) < maxClusters {
				out.Clusters = append(out.Clusters, shipper.ChosenCluster{
					Name: v.Cluster, Reason: v.Reason, AffinityScore: v.Affinity, SpreadScore: v.Spread,
				})
			}
			continue
		}
		index, ok := at[v.Reason]
		if !ok {
			index = len(out.Rejected)
			at[v.Reason] = index
			out.Rejected = append(out.Rejected, shipper.RejectedClusters{Reason: v.Reason, Message: v.Message})
		}
		rejected := &out.Rejected[index]
		rejected.Count++
		if len(rejected.Examples) < maxExamples {
			rejected.Examples = append(rejected.Examples, v.Cluster)
		}
	}
	slices.SortFunc(out.Rejected, func(a, b shipper.RejectedClusters) int { return cmp.Compare(a.Reason, b.Reason) })
	return out
}

// Unfulfilled says for users why fewer clusters are chosen than wanted; empty when there are enough. It names at most 5 clusters,
// those that the affinity does not want last, and counts the others by reason.
func (d Decision) Unfulfilled() string {
	if len(d.Chosen) >= d.Wanted {
		return ""
	}
	var rejected []*Verdict
	for i := range d.Verdicts {
		if v := &d.Verdicts[i]; !v.Chosen && v.Reason != shipper.PlacementNotNamed {
			rejected = append(rejected, v)
		}
	}
	unwanted := func(v *Verdict) int {
		if v.Reason == shipper.PlacementAffinityNotMet {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(rejected, func(a, b *Verdict) int { return unwanted(a) - unwanted(b) })
	said := fmt.Sprintf("%d of %d clusters", len(d.Chosen), d.Wanted)
	if len(rejected) == 0 {
		return said + ": there are no others"
	}
	var parts []string
	for _, v := range rejected[:min(maxNamed, len(rejected))] {
		parts = append(parts, v.Cluster+": "+v.Message)
	}
	if len(rejected) > maxNamed {
		parts = append(parts, fmt.Sprintf("%d more: %s", len(rejected)-maxNamed, countedByReason(rejected[maxNamed:])))
	}
	return said + ": " + strings.Join(parts, "; ")
}

// countedByReason lists each reason with its count, the most frequent first.
func countedByReason(verdicts []*Verdict) string {
	counts := map[shipper.PlacementReason]int{}
	var reasons []shipper.PlacementReason
	for _, v := range verdicts {
		if counts[v.Reason] == 0 {
			reasons = append(reasons, v.Reason)
		}
		counts[v.Reason]++
	}
	slices.SortFunc(reasons, func(a, b shipper.PlacementReason) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	parts := make([]string, len(reasons))
	for i, reason := range reasons {
		parts[i] = fmt.Sprintf("%d %s", counts[reason], reason)
	}
	return strings.Join(parts, ", ")
}
