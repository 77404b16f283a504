// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"cmp"
	"slices"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Recovery is a cluster that had failed within maxFailures and was ready again, as the status is to have it.
type Recovery struct {
	shipper.RecoveringCluster
	// Judged is true while the cluster can get what it lacks: its time runs.
	Judged bool
	// Available are the Pods of the newest Release there.
	Available int32
	// Exposed reports whether no maxFailures covers it if the cluster fails again.
	Exposed bool
	// Message says what the cluster lacks.
	Message string
}

// observeFailures fills in what the status says of the cluster. An unbounded rollout waits for all.
func (w *byWave) observeFailures(p *part) {
	if f := w.newest().failures; !w.unbounded {
		p.failed, p.recovery = f.Counts(p.cluster), f.Recovery(p.cluster)
	}
}

// isReadyAgain reports whether a failed cluster has all that was requested there, and may be asked for more in its turn.
func (w *byWave) isReadyAgain(p *part) bool {
	return p.failed && p.isReady() && installedIn(p.contenderPart().release, p.cluster) && !w.isBlocked(p) && !w.keepsFailures()
}

// keepsFailures reports whether a check has failed: its verdict stays until a user has the checks made again, and so do the clusters in
// which they are made.
func (w *byWave) keepsFailures() bool {
	p := w.rel.Status.Progress
	return p != nil && p.Failure != nil && p.Failure.Reason == shipper.CheckFailed
}

// isRecovering reports whether a cluster moves, or is to move, after it failed.
func (p *part) isRecovering() bool { return p.recovery != nil || p.recovers }

// catchesUp reports whether a cluster that had failed has all that the position asks for, and the status does not say so yet. The checks so
// far were made without it.
func (w *byWave) catchesUp(p *part) bool {
	return p.state == waves.Done && (p.failed || p.recovery != nil && !p.recovery.CaughtUp) && !w.keepsFailures()
}

// failuresNow are the failures after this plan. A complete Release has none; after a move back those that are ready, or of which nothing is
// asked any more, are none. Clusters that have caught up are listed until the position changes.
func (w *byWave) failuresNow(complete bool) (out waves.Failures) {
	if complete {
		return out
	}
	stored, back := w.newest().failures, stamp.WentBack(w.rel)
	for _, cluster := range stored.Counted {
		p := w.parts[cluster]
		switch {
		case back && (!p.due || p.state == waves.Done):
		case len(stored.Recovering)+len(out.Recovering) < waves.MaxFailures && (p.recovers || w.catchesUp(p)):
			out.Recovering = append(out.Recovering, shipper.RecoveringCluster{Name: cluster, CaughtUp: w.catchesUp(p)})
		default:
			out.Counted = append(out.Counted, cluster)
		}
	}
	for _, one := range stored.Recovering {
		p := w.parts[one.Name]
		if back && (!p.due || p.state == waves.Done || one.CaughtUp) || one.CaughtUp && w.isMoved() {
			continue
		}
		one.CaughtUp = one.CaughtUp || w.catchesUp(p)
		out.Recovering = append(out.Recovering, one)
	}
	slices.SortFunc(out.Recovering, func(a, b shipper.RecoveringCluster) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// isMoved reports whether the figures in the status are of an earlier position.
func (w *byWave) isMoved() bool {
	p := w.rel.Status.Progress
	return p != nil && !IsCurrent(w.rel, p)
}

// recoveries describes the recovering clusters of the new status.
func (w *byWave) recoveries(all []shipper.RecoveringCluster) (out []Recovery) {
	for _, one := range all {
		p := w.parts[one.Name]
		l := p.lack()
		out = append(out, Recovery{
			RecoveringCluster: one, Exposed: w.exposed(p), Message: l.Message,
			Available: w.newest().capacityStatus[one.Name].AvailableReplicas,
			Judged: w.stages != nil && p.recovery != nil && p.state != "" && p.state != waves.Done && l.Reachable && !w.isBlocked(p) &&
				(p.acts || !p.isReady()),
		})
	}
	return out
}
