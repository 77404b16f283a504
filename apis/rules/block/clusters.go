// SPDX-License-Identifier: Apache-2.0

package block

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Clusters has, by cluster, the message of the blocks that hold the cluster alone.
type Clusters map[string]string

// ByCluster reports whether blocks that name clusters hold these clusters of a Release alone: it goes by waves, and its clusters are known.
func ByCluster(rel *shipper.Release) bool {
	return position.HasWaves(rel) && len(stamp.Clusters(rel)) > 0
}

// Split divides a verdict on the rollout of a Release: the first part stops all of it, and the clusters in the second are held alone.
func (v Verdict) Split(rel *shipper.Release) (Verdict, Clusters) {
	if !ByCluster(rel) {
		return v, nil
	}
	var whole []*shipper.RolloutBlock
	by := map[string][]*shipper.RolloutBlock{}
	for _, b := range v.Effective {
		if !holdsAlone(b) {
			whole = append(whole, b)
			continue
		}
		for _, cluster := range b.Spec.Scope.Clusters {
			by[cluster] = append(by[cluster], b)
		}
	}
	held := Clusters{}
	for cluster, blocks := range by {
		held[cluster] = shipper.BlockedBy + FormatOverrides(Names(blocks))
	}
	v.Effective = whole
	return v, held
}

// holdsAlone reports whether a block holds only the clusters that it names. With matchConditions it stops the request: the reconciler
// has no request to judge by them, and would not hold the clusters afterwards.
func holdsAlone(b *shipper.RolloutBlock) bool {
	return b.Spec.Scope != nil && len(b.Spec.Scope.Clusters) > 0 && len(b.Spec.MatchConditions) == 0
}

// Of are those of the named clusters that are held, sorted.
func (h Clusters) Of(clusters []string) []string {
	var out []string
	for _, cluster := range slices.Sorted(maps.Keys(h)) {
		if slices.Contains(clusters, cluster) {
			out = append(out, cluster)
		}
	}
	return out
}

// maxListed bounds the clusters that List names.
const maxListed = 10

// List names clusters, 10 at most, and counts the others.
func List(clusters []string) string {
	out := strings.Join(clusters[:min(len(clusters), maxListed)], ", ")
	if more := len(clusters) - maxListed; more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}

// Spares reports whether one of the named clusters is not held.
func (h Clusters) Spares(clusters []string) bool {
	return slices.ContainsFunc(clusters, func(c string) bool { return h[c] == "" })
}

// Move is a change of a Release's position. Where it goes by waves, only the clusters count of which the new position asks something else.
func (a App) Move(old, rel *shipper.Release) (Change, []string) {
	c := a.Step(rel)
	if !ByCluster(rel) {
		return c, nil
	}
	moved := waves.Moved(old, rel, stamp.Clusters(rel))
	c.Clusters = func() []string { return moved }
	return c, moved
}

// Resume is the end of a user's hold of a Release: with waves it concerns the clusters of the wave in front.
func (a App) Resume(rel *shipper.Release) (Change, []string) {
	c := a.Step(rel)
	if !ByCluster(rel) {
		return c, nil
	}
	front := append([]string{}, waves.Front(rel, stamp.Clusters(rel))...)
	c.Clusters = func() []string { return front }
	return c, front
}

// Narrowed is the verdict on a change that concerns these clusters of a Release, and which of them are held. While one of them is not, the
// blocks that hold clusters alone do not stop the change.
func (v Verdict) Narrowed(rel *shipper.Release, clusters []string) (Verdict, Clusters) {
	whole, held := v.Split(rel)
	if len(held) == 0 || !held.Spares(clusters) {
		return v, nil
	}
	maps.DeleteFunc(held, func(c, _ string) bool { return !slices.Contains(clusters, c) })
	return whole, held
}
