// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"slices"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// placedWaves is what waves add to the plan of a Release with resources: a cluster is taken over in its wave, and keeps before what an
// earlier Release placed there. After a move back it returns to that Release.
type placedWaves struct {
	strategy *shipper.RolloutStrategy
	at       position.Position
	assigned waves.Assigned
	// unbounded is true for what waits for no slot: a move back, an immediate rollback and the repair of what is complete.
	unbounded bool
	// failed are the clusters that have missed progressDeadline within maxFailures; none while the position is not bounded.
	failed map[string]bool
	// leaves are the clusters of Releases that are being deleted.
	leaves map[string]bool
	// gated has the stages of the position: its clusters, and then the tasks of the wave.
	gated *rollout
}

// placedWavesOf is nil for a contender without waves.
func placedWavesOf(p *placing) *placedWaves {
	rel := p.contender().Release
	if !position.HasWaves(rel) {
		return nil
	}
	w := &placedWaves{
		strategy: rel.Spec.Environment.Strategy, at: position.Of(rel), assigned: waves.Parse(rel), failed: map[string]bool{},
		leaves: map[string]bool{}, unbounded: p.unpaced() || stamp.WentBack(rel) || IsImmediateRollback(rel),
	}
	if p.Returning && Complete(rel) {
		w.at = position.Last(w.strategy)
	}
	if !w.unbounded {
		for _, cluster := range p.storedFailures() {
			w.failed[cluster] = true
		}
	}
	for _, release := range p.Leaving {
		for _, cluster := range lists(release) {
			w.leaves[cluster] = true
		}
	}
	return w
}

// isLastWave reports whether the position names the last wave.
func (w *placedWaves) isLastWave() bool { return w.at.Wave >= w.strategy.LastWave() }

// reached reports whether the position asks the contender for a cluster.
func (p *placing) reached(cluster string) bool {
	wave, known := p.byWaves.assigned[cluster]
	return known && wave <= p.byWaves.at.Wave
}

// isBlocked reports whether RolloutBlocks hold a cluster alone.
func (p *placing) isBlocked(cluster string) bool { return p.BlockedIn[cluster] != "" }

// stateOf is what a cluster does that the position reaches. It is empty where nothing is requested and nothing can be: such a cluster takes
// no slot.
func (p *placing) stateOf(cluster string) waves.State {
	switch listed := slices.Contains(p.listed, cluster); {
	case p.isPlaced(cluster):
		return waves.Done
	case p.byWaves.failed[cluster]:
		return waves.Failed
	case listed:
		return waves.Moving
	case p.isBlocked(cluster):
		return waves.Blocked
	case p.reachable(cluster):
		return waves.Waiting
	}
	return ""
}

// takeOverByWaves is takeOver by waves.
func (p *placing) takeOverByWaves() {
	var all []waves.Cluster
	for _, cluster := range p.clusters {
		if p.reached(cluster) {
			all = append(all, waves.Cluster{
				Name: cluster, Wave: p.byWaves.assigned[cluster], State: p.stateOf(cluster),
				Unbounded: p.byWaves.unbounded || p.byWaves.leaves[cluster] || !p.hasEarlier(cluster),
			})
		}
	}
	begins := waves.Begin(p.byWaves.strategy, all)
	if p.isHeld() { // an abort is carried out all the same
		begins = slices.DeleteFunc(begins, func(cluster string) bool { return !p.byWaves.leaves[cluster] })
	}
	p.next = nil
	for _, cluster := range p.clusters {
		listed := slices.Contains(p.listed, cluster)
		if slices.Contains(begins, cluster) || listed && (p.isBlocked(cluster) || !p.hasReturned(cluster)) {
			p.next = append(p.next, cluster)
		}
	}
	p.keepLeaving()
}

// isHeld reports whether a user holds the contender: no cluster begins, and those that have begun get there.
func (p *placing) isHeld() bool {
	rel := p.contender().Release
	return rel.Spec.Hold != "" && !stamp.HeldByRun(rel) && !Complete(rel) && !p.Returning && !stamp.WentBack(rel)
}

// returns reports whether a cluster goes back to an earlier Release: the position does not reach it any more. Without an earlier Release it
// keeps what it has, for nothing else would be there.
func (p *placing) returns(cluster string) bool {
	return p.byWaves != nil && slices.Contains(p.clusters, cluster) && slices.Contains(p.listed, cluster) && !p.reached(cluster) &&
		p.earlier(cluster) >= 0
}

// hasReturned reports whether the earlier Release has a cluster again that goes back. Only then the contender drops it: between the two
// writes the objects are always in the target of one of them, and are never deleted.
func (p *placing) hasReturned(cluster string) bool {
	return p.returns(cluster) && slices.Contains(lists(p.Releases[p.earlier(cluster)]), cluster)
}

// earlier is the index of the Release before the contender that a cluster goes back to: the newest that lists it, else the newest complete
// one that was placed there; -1 when there is none.
func (p *placing) earlier(cluster string) int {
	older := p.Releases[:len(p.Releases)-1]
	for i, r := range slices.Backward(older) {
		if slices.Contains(lists(r), cluster) {
			return i
		}
	}
	for i, r := range slices.Backward(older) {
		if r.Installation != nil && Complete(r.Release) && slices.Contains(stamp.Clusters(r.Release), cluster) {
			return i
		}
	}
	return -1
}

// withReturned adds to the clusters of the i-th Release those that go back to it: from the contender, or from a Release that is being
// deleted amid the waves.
func (p *placing) withReturned(i int, clusters []string) []string {
	if p.byWaves == nil {
		return clusters
	}
	for _, cluster := range p.clusters {
		goesBack := p.returns(cluster) || p.byWaves.leaves[cluster] && !p.reached(cluster) && !slices.Contains(p.listed, cluster)
		if goesBack && p.earlier(cluster) == i && !slices.Contains(clusters, cluster) {
			clusters = append(clusters, cluster)
		}
	}
	slices.Sort(clusters)
	return clusters
}

// keepBlocked is want, but with the clusters that RolloutBlocks hold alone as they are.
func (p *placing) keepBlocked(have, want []string) []string {
	if len(p.BlockedIn) == 0 {
		return want
	}
	want = slices.DeleteFunc(slices.Clone(want), p.isBlocked)
	for _, cluster := range have {
		if p.isBlocked(cluster) {
			want = append(want, cluster)
		}
	}
	slices.Sort(want)
	return want
}

// awaits reports whether the position waits for a cluster. The last one needs all clusters, also those of no wave; each other one those of
// its wave, and those that go back. Clusters that have failed within maxFailures are passed.
func (p *placing) awaits(cluster string) bool {
	if p.concerns(cluster) && p.reachedOrLast(cluster) {
		return !p.isPlaced(cluster) && (!p.byWaves.failed[cluster] || p.hasFailedEverywhere())
	}
	return p.returns(cluster)
}

// hasFailedEverywhere reports whether all clusters of the wave in front have failed, as when the others have left: it is not passed
// without one.
func (p *placing) hasFailedEverywhere() bool {
	front := p.byWaves.assigned.In(p.byWaves.at.Wave, p.clusters)
	return len(front) > 0 && !slices.ContainsFunc(front, func(cluster string) bool { return !p.byWaves.failed[cluster] })
}

func (p *placing) reachedOrLast(cluster string) bool {
	return p.reached(cluster) || p.byWaves.isLastWave()
}

// concerns reports whether the position is achieved only if a cluster has what is asked of it.
func (p *placing) concerns(cluster string) bool {
	wave, known := p.byWaves.assigned[cluster]
	return p.byWaves.isLastWave() || known && wave == p.byWaves.at.Wave || p.returns(cluster)
}

// placedClusters is in how many clusters the contender is ready.
func (p *placing) placedClusters() (n int32) {
	for _, cluster := range p.clusters {
		if p.isPlaced(cluster) {
			n++
		}
	}
	return n
}

// isFreed reports whether a Release that is being deleted is needed in a cluster no more: the one that follows there has the cluster in its
// target and knows of it. It cannot be ready before, for the newest Release that lists a cluster writes there.
func (p *placing) isFreed(cluster string) bool {
	follows := func(r Release) bool { return slices.Contains(lists(r), cluster) && installedIn(r, cluster) }
	switch {
	case !slices.Contains(p.clusters, cluster):
		return p.everywhere()
	case p.byWaves == nil || p.reached(cluster):
		return follows(p.contender())
	}
	i := p.earlier(cluster)
	return i >= 0 && follows(p.Releases[i])
}
