// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"slices"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// participant is a Release that the plan may move, with the quantities that the step wants for it.
type participant struct {
	release  Release
	capacity *quantity
	traffic  *quantity
	// mayGrow is false until the Release is installed: it must not get more capacity before.
	mayGrow bool
	// alone reports whether no other Release serves in a cluster. The cluster then waits for no other cluster.
	alone func(cluster string) bool
	// achievedCapacity and achievedTraffic are the types of this participant's conditions.
	achievedCapacity, achievedTraffic string
}

// serves reports whether a participant has at least the wanted capacity and traffic; true for nil.
func (s *participant) serves() bool {
	if s == nil {
		return true
	}
	t := s.traffic
	return s.capacity.enough() && t.exists && t.current && t.ready && len(t.below()) == 0 && !t.changed()
}

// move requests as much of the wanted quantities as may be requested now.
func move(contender, incumbent *participant) {
	for _, pair := range [][2]*participant{{contender, incumbent}, {incumbent, contender}} {
		if me, other := pair[0], pair[1]; me != nil {
			me.raise()
			me.lower(other)
		}
	}
}

// raise requests more: capacity at once, traffic once the capacity is ready.
func (s *participant) raise() {
	if s.capacity.exists {
		s.capacity.set(s.where(s.capacity.below(), s.mayGrow, func(c string) bool { return installedIn(s.release, c) }))
	}
	if s.traffic.exists {
		s.traffic.set(s.where(s.traffic.below(), s.capacity.enough(), s.capacity.enoughIn))
	}
}

// where filters the clusters in which a quantity may be raised: all of them when all are ready, otherwise the ready ones in
// which no other Release serves.
func (s *participant) where(clusters []string, all bool, ready func(cluster string) bool) []string {
	if all {
		return clusters
	}
	return slices.DeleteFunc(clusters, func(c string) bool { return !s.alone(c) || !ready(c) })
}

// lower requests less: traffic once the other participant serves, capacity once the traffic is gone too.
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

// shrinks reports whether this participant's share of the traffic in a cluster will become smaller.
func (s *participant) shrinks(other *participant, cluster string) bool {
	if other == nil {
		return false
	}
	mine, theirs := s.traffic.asked[cluster], other.traffic.asked[cluster]
	return s.traffic.wanted*(mine+theirs) < mine*(s.traffic.wanted+other.traffic.wanted) ||
		s.traffic.wanted+other.traffic.wanted == 0
}

// drained reports whether a cluster sends this participant at most the wanted traffic: that was requested and is achieved.
func (s *participant) drained(cluster string) bool {
	t := s.traffic
	if !t.exists {
		return true
	}
	return !t.settling[cluster] && t.next[cluster] == t.asked[cluster] && t.asked[cluster] <= t.wanted &&
		(t.readyIn(cluster) || t.asked[cluster] < t.wanted)
}

// trafficNeeds is the condition, of either participant, that delays the traffic request; empty when none does.
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

// capacityNeeds is the condition, of either participant, that delays the capacity request; empty when none does.
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
		if !slices.ContainsFunc(c.above(), s.traffic.reachable) {
			return "" // traffic that waits for this capacity must not be what it waits for
		}
		return s.achievedTraffic
	}
	return other.lacks()
}

// lacks is the condition that a participant needs in order to serve; empty when it serves.
func (s *participant) lacks() string {
	switch {
	case s.serves():
		return ""
	case !s.capacity.enough():
		return s.achievedCapacity
	}
	return s.achievedTraffic
}

// retire takes traffic, then capacity, from a retired Release. The rollout does not wait for it: a lost cluster must not stop
// the steps that follow.
func (r *rollout) retire(release Release) *participant {
	s := r.unmoved(release)
	s.lower(nil)
	return s
}

// alone returns a function that reports whether only the i-th Release is known to have traffic in a cluster.
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

// unmoved is a Release that the plan does not move: it requests only the quantities found in clusters that had no request.
func (r *rollout) unmoved(release Release) *participant {
	return &participant{release: release, capacity: capacityQuantity(release, 0), traffic: trafficQuantity(release, 0, r.weights())}
}
