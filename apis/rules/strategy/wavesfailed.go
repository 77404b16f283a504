// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"cmp"
	"slices"
	"strings"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// observeFailed fills in the clusters that have failed within maxFailures. An unbounded rollout waits for them, too.
func (w *byWave) observeFailed() {
	w.failed = map[string]bool{}
	if w.unbounded {
		return
	}
	for _, cluster := range w.storedFailures() {
		w.failed[cluster] = true
	}
}

// storedFailures are the clusters that have failed by the status and that the Release still has.
func (w *byWave) storedFailures() (out []string) {
	chosen := chosenOf(w.contender())
	for _, cluster := range w.rel.Status.FailedClusters {
		if _, is := slices.BinarySearch(chosen, cluster); is {
			out = append(out, cluster)
		}
	}
	return out
}

// lags reports whether a cluster has failed within maxFailures, and lacks what is asked of it.
func (w *byWave) lags(p *part) bool { return w.failed[p.cluster] && p.state != waves.Done }

// lag notes, for users, which clusters lag and what the first one lacks. One whose state is not known lags, and one for which an unbounded
// rollout waits does, too: otherwise the Release would be complete without it.
func (w *byWave) lag() {
	var names []string
	why := ""
	for _, cluster := range w.storedFailures() {
		p := w.parts[cluster]
		if p.state == waves.Done {
			continue
		}
		if names = append(names, cluster); why == "" && p.state != "" {
			why = strings.TrimSuffix(": "+cluster+": "+shortened(w.orBlocked(p, p.lack()).Message), ": ")
		}
	}
	if len(names) > 0 {
		w.lagging = waves.Counted(names) + " failed within maxFailures; what served there before stays until this Release is ready" + why
	}
}

// lack is what a cluster lacks first.
func (p *part) lack() Lack {
	own := p.ownStages()
	if i := slices.IndexFunc(own, func(s stage) bool { return !s.achieved }); i >= 0 {
		return p.lackIn(own[i])
	}
	return Lack{Cluster: p.cluster, Reachable: true}
}

// lackIn is what a cluster lacks first in a stage; the cluster alone if the stage does not say.
func (p *part) lackIn(s stage) Lack {
	return cmp.Or(firstOfAll(s.lacking()), Lack{Cluster: p.cluster, Reachable: true})
}

// failedClusters are those that stay counted. After a move back they are those that are not ready; a complete Release has none.
func (w *byWave) failedClusters(complete bool) []string {
	if complete || len(w.rel.Status.FailedClusters) == 0 {
		return nil
	}
	var out []string
	for _, cluster := range w.storedFailures() {
		p, over := w.parts[cluster], false
		if stamp.WentBack(w.rel) && p != nil {
			over = !p.due || p.state == waves.Done
		}
		if !over {
			out = append(out, cluster)
		}
	}
	return out
}

// countFailed counts the clusters that lag in the figures of their waves. Those with the fewest available Pods are named first.
func (w *byWave) countFailed(out []shipper.ReleaseWave) {
	var lagging []*part
	for _, cluster := range w.names {
		if p := w.parts[cluster]; p.wave >= 0 && int(p.wave) < len(out) && w.lags(p) {
			lagging = append(lagging, p)
		}
	}
	if len(lagging) == 0 {
		return
	}
	pods := available(w.contender())
	slices.SortStableFunc(lagging, func(a, b *part) int { return cmp.Compare(pods[a.cluster], pods[b.cluster]) })
	for _, p := range lagging {
		f := &out[p.wave]
		if f.Failed++; len(f.FailedClusters) < maxMovingClusters {
			f.FailedClusters = append(f.FailedClusters, p.cluster)
		}
	}
}

// exposed reports whether fewer Pods of the newest Release are available in a cluster than what served there before has given up. No
// maxFailures covers that: nothing would give the cluster its Pods back.
func (w *byWave) exposed(p *part) bool {
	before := incumbentOf(p.Releases)
	if before == nil {
		return false
	}
	i := slices.IndexFunc(w.live, func(l *located) bool { return l.Release.Release.Name == before.Name })
	if i < 0 {
		return false
	}
	had := w.live[i].capacity[p.cluster]
	gaveUp := Pods(had.TotalReplicaCount, 100) - Pods(had.TotalReplicaCount, had.Percent)
	return !had.AsFound && w.newest().capacityStatus[p.cluster].AvailableReplicas < gaveUp
}

// late are the clusters that fail if the deadline ends now, where the strategy lets clusters fail: they can be reached, were asked for what
// they lack, and the position waits for them. over says which maxFailures they exceed then.
func (w *byWave) late() (names []string, over string) {
	if w.stages == nil || w.unbounded || !waves.HasBudget(w.strategy) {
		return nil, ""
	}
	var exposed []string
	for _, cluster := range w.names {
		p := w.parts[cluster]
		if !w.concerns(p) || !p.acts || p.state == "" || p.state == waves.Done || w.failed[cluster] {
			continue
		}
		if p.lack().Reachable {
			names = append(names, cluster)
			if w.exposed(p) {
				exposed = append(exposed, cluster)
			}
		}
	}
	switch {
	case len(names) == 0:
		return nil, ""
	case len(exposed) > 0:
		return names, waves.Counted(exposed) + " failed after what served there gave up Pods, which maxFailures does not cover"
	}
	failed := slices.Concat(w.rel.Status.FailedClusters, names)
	slices.Sort(failed)
	return names, w.assigned.OverBudget(w.strategy, chosenOf(w.contender()), failed)
}
