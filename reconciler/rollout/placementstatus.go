// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// carriedOut reports whether the decision is what Releases have now.
func (p clustersPlan) carriedOut(d releasesDone) bool {
	return p.decision != nil && !p.held && (!p.writes() || d.placed)
}

// ofPlacement is the condition Scheduled of the newest Release, of which the targets are there; nil when nothing new is known. With fewer
// clusters than its placement wants it goes on in those that it has.
func ofPlacement(rel *shipper.Release, p clustersPlan, d releasesDone) *shipper.Condition {
	c := &shipper.Condition{Type: shipper.ReleaseScheduled, Status: corev1.ConditionTrue}
	if outside := outsideWaves(rel); len(outside) > 0 {
		c.Status, c.Reason = corev1.ConditionFalse, shipper.NoWaveForClusters
		more := ""
		if n := len(outside) - maxOutside; n > 0 {
			outside, more = outside[:maxOutside], fmt.Sprintf(" and %d more", n)
		}
		c.Message = fmt.Sprintf("no wave of the strategy selects clusters [%s]%s, which keep what they have: label them for a wave, or add a "+
			"wave without clusterSelector", strings.Join(outside, " "), more)
		return c
	}
	was := shipper.FindCondition(rel.Status.Conditions, c.Type)
	switch {
	case p.decision == nil:
	case p.carriedOut(d):
		if c.Message = p.decision.Unfulfilled(); c.Message != "" {
			c.Status, c.Reason = corev1.ConditionFalse, shipper.PlacementUnfulfilled
		}
	case was != nil && was.Reason == shipper.PlacementUnfulfilled:
		return nil
	}
	return c
}

// maxOutside bounds the clusters without a wave that a condition names.
const maxOutside = 10

// outsideWaves are the clusters of a Release that no wave of its strategy selects.
func outsideWaves(rel *shipper.Release) []string {
	if !position.HasWaves(rel) {
		return nil
	}
	return waves.Parse(rel).Without(rel.Spec.Environment.Strategy, stamp.Clusters(rel))
}

// placed is status.placement of the newest Release: nil without a placement. What it says of a cluster that it has already stays, for a
// later decision says only that the cluster is kept.
func placed(s *scope, p clustersPlan, d releasesDone) *shipper.ReleasePlacement {
	newest := s.history.Newest()
	was := newest.Status.Placement
	if newest.Spec.Environment.ClusterRequirements.Placement == nil || p.decision == nil && was == nil {
		return nil
	}
	if !p.carriedOut(d) {
		return was
	}
	is := p.decision.Status()
	var before []string
	if rel := s.placedBefore(); rel != nil {
		before = stamp.Clusters(rel)
	}
	for i, c := range is.Clusters {
		if said := clusterOf(was, c.Name); said != nil {
			is.Clusters[i] = *said
		} else if is.Clusters[i].Reason = shipper.PlacementPicked; slices.Contains(before, c.Name) {
			is.Clusters[i].Reason = shipper.PlacementKept
		}
	}
	there := s.fleet()
	for _, name := range stamp.Clusters(newest) { // those that leave are there until others serve
		if clusterOf(is, name) == nil && there[name] != nil {
			is.Clusters, is.Chosen = append(is.Clusters, shipper.ChosenCluster{Name: name, Reason: shipper.PlacementKept}), is.Chosen+1
		}
	}
	slices.SortFunc(is.Clusters, func(a, b shipper.ChosenCluster) int { return cmp.Compare(a.Name, b.Name) })
	return is
}

// clusterOf is what is said of a cluster; nil when nothing is.
func clusterOf(p *shipper.ReleasePlacement, name string) *shipper.ChosenCluster {
	if p == nil {
		return nil
	}
	if i := slices.IndexFunc(p.Clusters, func(c shipper.ChosenCluster) bool { return c.Name == name }); i >= 0 {
		return &p.Clusters[i]
	}
	return nil
}

// undecidedClusters reports whether other clusters may become those of the newest Release, or its status does not say why it has them.
func undecidedClusters(newest *shipper.Release) bool {
	if newest == nil {
		return false
	}
	has := stamp.Clusters(newest)
	if len(has) == 0 || searching(newest) || len(outsideWaves(newest)) > 0 {
		return true
	}
	if newest.Spec.Environment.ClusterRequirements.Placement == nil {
		return false
	}
	var said []string
	for _, c := range newest.Status.Placement.Clusters {
		said = append(said, c.Name)
	}
	return !slices.Equal(said, has)
}

// onlyPlacement reports whether two statuses differ in nothing but which clusters are there to choose from.
func onlyPlacement(was, is shipper.ReleaseStatus) bool {
	same := *is.DeepCopy()
	same.Placement = was.Placement
	before := shipper.FindCondition(was.Conditions, shipper.ReleaseScheduled)
	if before != nil && before.Reason == shipper.PlacementUnfulfilled {
		for i := range same.Conditions {
			if after := &same.Conditions[i]; after.Type == before.Type && after.Reason == before.Reason {
				after.Message = before.Message
			}
		}
	}
	sum := was.Summary
	if sum != nil && same.Summary != nil && sum.Waiting == shipper.ReleaseScheduled && same.Summary.Waiting == sum.Waiting {
		same.Summary.Message = sum.Message
	}
	return !equality.Semantic.DeepEqual(was, is) && equality.Semantic.DeepEqual(was, same)
}
