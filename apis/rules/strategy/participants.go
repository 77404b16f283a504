// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"slices"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// participant is the contender or the incumbent, with what the step wants of it.
type participant struct {
	release  Release
	capacity *quantity
	traffic  *quantity
	// mayGrow is false while the Release must not get more capacity: until it is installed.
	mayGrow bool
	// alone reports whether nobody else serves in a cluster: nobody does in this side's stead, so that the cluster waits for
	// no other.
	alone func(cluster string) bool
	// achievedCapacity and achievedTraffic are the types of this side's conditions.
	achievedCapacity, achievedTraffic string
}

// serves reports whether a side has at least the capacity and the traffic that are wanted of it. Nobody serves trivially.
func (s *participant) serves() bool {
	if s == nil {
		return true
	}
	t := s.traffic
	return s.capacity.enough() && t.exists && t.current && t.ready && len(t.below()) == 0 && !t.changed()
}

// move asks for as much of what is wanted as can be asked for now.
func move(contender, incumbent *participant) {
	for _, pair := range [][2]*participant{{contender, incumbent}, {incumbent, contender}} {
		if me, other := pair[0], pair[1]; me != nil {
			me.raise()
			me.lower(other)
		}
	}
}

// raise asks for more: capacity at once, traffic once the capacity is ready.
func (s *participant) raise() {
	if s.capacity.exists {
		s.capacity.set(s.where(s.capacity.below(), s.mayGrow, func(c string) bool { return installedIn(s.release, c) }))
	}
	if s.traffic.exists {
		s.traffic.set(s.where(s.traffic.below(), s.capacity.enough(), s.capacity.enoughIn))
	}
}

// where is in which of the clusters something may be raised: in all when all are ready, otherwise in those that are where
// nobody else serves.
func (s *participant) where(clusters []string, all bool, ready func(cluster string) bool) []string {
	if all {
		return clusters
	}
	return slices.DeleteFunc(clusters, func(c string) bool { return !s.alone(c) || !ready(c) })
}

// lower asks for less: traffic once the other side serves, capacity once the traffic is gone too.
func (s *participant) lower(other *participant) {
	for _, c := range s.traffic.above() {
		if !s.shrinks(other, c) || other.serves() {
			s.traffic.set([]string{c})
		}
	}
	for _, c := range s.capacity.above() {
		if s.drained(c) && (s.traffic.asked[c] == 0 || other.serves()) {
			s.capacity.set([]string{c})
		}
	}
}

// shrinks reports whether this side's share of the traffic in a cluster is to become smaller.
func (s *participant) shrinks(other *participant, cluster string) bool {
	if other == nil {
		return false
	}
	mine, theirs := s.traffic.asked[cluster], other.traffic.asked[cluster]
	return s.traffic.wanted*(mine+theirs) < mine*(s.traffic.wanted+other.traffic.wanted) ||
		s.traffic.wanted+other.traffic.wanted == 0
}

// drained reports whether a cluster sends this side no more traffic than is wanted: it was asked to, and it has done it.
func (s *participant) drained(cluster string) bool {
	t := s.traffic
	if !t.exists {
		return true
	}
	return !t.settling[cluster] && t.next[cluster] == t.asked[cluster] && t.asked[cluster] <= t.wanted &&
		(t.readyIn(cluster) || t.asked[cluster] < t.wanted)
}

// trafficNeeds is what keeps traffic from being asked for: a condition of either side, or nothing.
func (s *participant) trafficNeeds(other *participant) string {
	switch t := s.traffic; {
	case !t.exists:
		return ""
	case len(t.below()) > 0 && !s.capacity.enough():
		return s.achievedCapacity
	case t.holdsBack():
		return other.lacks()
	}
	return ""
}

// capacityNeeds is what keeps capacity from being asked for: a condition of either side, or nothing.
func (s *participant) capacityNeeds(other *participant) string {
	c := s.capacity
	switch {
	case !c.exists:
		return ""
	case len(c.below()) > 0 && !s.mayGrow:
		return shipper.StrategyContenderAchievedInstallation
	case !c.holdsBack():
		return ""
	case slices.ContainsFunc(c.above(), func(cluster string) bool { return !s.drained(cluster) }):
		return s.achievedTraffic
	}
	return other.lacks()
}

// lacks is the condition for want of which a side does not serve.
func (s *participant) lacks() string {
	switch {
	case s.serves():
		return ""
	case !s.capacity.enough():
		return s.achievedCapacity
	}
	return s.achievedTraffic
}

// retire takes traffic from a Release that has no part any more, then capacity. It is not waited for: a cluster that is
// gone must not stop what comes after.
func (r *rollout) retire(release Release) *participant {
	s := r.unmoved(release)
	s.lower(nil)
	return s
}

// alone tells of every cluster whether it is known to give traffic to nobody but the i-th Release.
func (r *rollout) alone(i int) func(cluster string) bool {
	var others []*quantity
	for j, release := range r.Releases {
		if j != i {
			if release.Lost() {
				return func(string) bool { return false }
			}
			others = append(others, r.unmoved(release).traffic)
		}
	}
	return func(cluster string) bool {
		return !slices.ContainsFunc(others, func(g *quantity) bool { return g.asked[cluster] > 0 || g.settling[cluster] })
	}
}

// unmoved is a Release that is not moved: all that is asked for is what was found where nothing had been asked for.
func (r *rollout) unmoved(release Release) *participant {
	return &participant{release: release, capacity: capacityQuantity(release, 0), traffic: trafficQuantity(release, 0, r.weights())}
}
