// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// letGo decides which clusters older Releases drop: those in which the contender is ready and, when it is ready in all its own, those
// that are not the contender's.
func (p *placing) letGo() {
	for i, release := range p.Releases[:len(p.Releases)-1] {
		for _, cluster := range lists(release) {
			if p.replaced(cluster) || p.isGone(release, cluster) {
				p.retired[i] = append(p.retired[i], cluster)
			}
		}
	}
}

// replaced reports whether nothing is lost in a cluster when an earlier Release drops it.
func (p *placing) replaced(cluster string) bool {
	if slices.Contains(p.clusters, cluster) {
		return p.isPlaced(cluster) && (p.byWaves == nil || p.reached(cluster))
	}
	return p.everywhere()
}

// isGone reports whether a cluster has left an older Release and the contender amid its waves: it is taken from both once the wave is done.
func (p *placing) isGone(older Release, cluster string) bool {
	return p.byWaves != nil && p.converged() && !slices.Contains(p.clusters, cluster) && !slices.Contains(chosenOf(older), cluster)
}

// planDeletions plans for the Releases that are being deleted. Each may go when others follow in the clusters that it lists, or there are
// none.
func (p *placing) planDeletions(now metav1.Time) []Leaving {
	var out []Leaving
	for _, release := range p.Leaving {
		var waits []string
		for _, cluster := range lists(release) {
			if !p.isFreed(cluster) {
				waits = append(waits, cluster)
			}
		}
		d := Leaving{Ready: len(waits) == 0, Status: *release.Release.Status.DeepCopy()}
		c := shipper.Condition{
			Type: shipper.ReleaseStrategyExecuted, Status: corev1.ConditionFalse, Reason: shipper.StrategyInProgress,
			Message: "being deleted; another Release is ready in its clusters",
		}
		switch {
		case release.Held != "":
			c.Message = "being deleted; kept: " + release.Held
		case !d.Ready:
			c.Message = fmt.Sprintf("being deleted; kept in clusters %s until Release %q is ready there", bracketed(waits),
				p.contender().Release.Name)
		}
		d.Status.Conditions = shipper.SetCondition(d.Status.Conditions, c, now)
		d.Status.ObservedGeneration = release.Release.Generation
		out = append(out, d)
	}
	return out
}
