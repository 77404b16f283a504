// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"cmp"
	"slices"
	"strings"

	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// lags reports whether a cluster has failed within maxFailures, and lacks what is asked of it.
func (p *part) lags() bool { return p.failed && p.state != waves.Done }

// lagging names, for users, the failed clusters without which the Release is not complete, and what the first one lacks. One whose state is
// not known lags, and one for which an unbounded rollout waits does, too. Those that have caught up lag while their checks are not made.
func (w *byWave) lagging() string {
	var names, caughtUp []string
	why, kept := "", false
	f := w.newest().failures
	for _, cluster := range w.names {
		p := w.parts[cluster]
		switch {
		case f.Lacks(cluster) && p.state != waves.Done:
			kept = kept || incumbentIn(p.Releases) >= 0
			if names = append(names, cluster); why == "" && p.state != "" {
				why = strings.TrimSuffix(": "+cluster+": "+shortened(w.noted(p, p.lack()).Message), ": ")
			}
		case f.Lacks(cluster), f.Recovery(cluster) != nil:
			caughtUp = append(caughtUp, cluster)
		}
	}
	awaited, _ := w.awaited()
	switch {
	case kept:
		return waves.Counted(names) + " failed within maxFailures; what served there before stays until this Release is ready" + why
	case len(names) > 0:
		return waves.Counted(names) + " failed within maxFailures; no earlier Release serves there: repair it, or edit the Application" + why
	case len(caughtUp) > 0 && awaited != nil:
		return waves.Counted(caughtUp) + " failed within maxFailures, and caught up since: " + shortened(awaited.message)
	}
	return ""
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

// countFailed counts the clusters that lag in the figures of their waves. Those with the fewest available Pods are named first.
func (w *byWave) countFailed(out []shipper.ReleaseWave) {
	var lagging []*part
	for _, cluster := range w.names {
		if p := w.parts[cluster]; p.wave >= 0 && int(p.wave) < len(out) && p.lags() {
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
	i := incumbentIn(p.Releases)
	if i < 0 {
		return false
	}
	had := w.live[p.index[i]].capacity[p.cluster]
	gaveUp := Pods(had.TotalReplicaCount, 100) - Pods(had.TotalReplicaCount, had.Percent)
	return !had.AsFound && w.newest().capacityStatus[p.cluster].AvailableReplicas < gaveUp
}

// late are the clusters that fail if the deadline ends now, where the strategy lets clusters fail: they can be reached, were asked for what
// they lack, and the position waits for them. over says which maxFailures they exceed then. Those that recover have deadlines of their own.
func (w *byWave) late() (names []string, over string) {
	if w.stages == nil || w.unbounded || !waves.HasBudget(w.strategy) {
		return nil, ""
	}
	var exposed []string
	for _, cluster := range w.names {
		p := w.parts[cluster]
		if !w.concerns(p) || !p.acts || p.state == "" || p.state == waves.Done || p.failed || p.recovery != nil {
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
		return names, Exposed(exposed)
	}
	failed := slices.Concat(w.newest().failures.Counted, names)
	slices.Sort(failed)
	return names, w.assigned.OverBudget(w.strategy, chosenOf(w.contender()), failed)
}

// Exposed says that clusters have failed which no maxFailures covers.
func Exposed(clusters []string) string {
	return waves.Counted(clusters) + " failed after what served there gave up Pods, which maxFailures does not cover"
}
