// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Leaving is the plan for a Release that is being deleted. It keeps its Pods and its traffic in each cluster until the other
// Releases serve there as the contender's step says; then it loses its traffic there. It may go when it has traffic in no
// cluster.
type Leaving struct {
	// Write holds the new specs of its targets.
	Write Write
	// Ready reports whether the Release may go, as far as traffic is concerned.
	Ready bool
	// Status is the Release's status with an updated StrategyExecuted, which says what the removal waits for.
	Status shipper.ReleaseStatus
}

// planDeletions plans for the Releases that are being deleted.
func (r *rollout) planDeletions(now metav1.Time) []Leaving {
	var out []Leaving
	for _, release := range r.Leaving {
		s := r.unmoved(release)
		r.unmark(s)
		var waits []string
		for _, cluster := range s.traffic.clusters {
			if r.replaced(cluster) {
				s.leave(cluster)
			}
			if !s.without(cluster) {
				waits = append(waits, cluster)
			}
		}
		d := Leaving{Ready: r.mayGo(release, s, waits), Status: *release.Release.Status.DeepCopy()}
		if r.Blocked == "" {
			d.Write = r.leavingWrite(release, s)
		}
		d.Status.Conditions = shipper.SetCondition(d.Status.Conditions, r.departing(d, release, waits), now)
		d.Status.ObservedGeneration = release.Release.Generation
		out = append(out, d)
	}
	return out
}

// StartsOver reports whether all Releases of an Application are being deleted and none is known to have ever completed, or may have
// taken the traffic of one that had. They go at once, and the next Release has the name of the first, as in the original Shipper.
func StartsOver(live int, leaving []Release) bool {
	return live == 0 && len(leaving) > 0 &&
		!slices.ContainsFunc(leaving, func(r Release) bool { return wasComplete(r.Release) || isHeir(r) })
}

// isHeir reports whether a Release, not the first of its Application, has traffic: one that is gone by now may have been complete.
func isHeir(r Release) bool {
	first := r.Release.Annotations[shipper.ReleaseGenerationAnnotation] == "0"
	return !first && r.Traffic != nil &&
		slices.ContainsFunc(r.Traffic.Spec.Clusters, func(c shipper.ClusterTrafficTarget) bool { return c.Weight > 0 })
}

// leave requests no traffic in a cluster and, once that is achieved, no Pods.
func (s *participant) leave(cluster string) {
	if !s.traffic.exists {
		return
	}
	s.traffic.set([]string{cluster})
	if s.capacity.exists && s.drained(cluster) {
		s.capacity.set([]string{cluster})
	}
}

// mayGo reports whether a Release serves in no cluster any more. If its TrafficTarget is lost, its traffic is unknown, so the
// other Releases have to serve in every cluster.
func (r *rollout) mayGo(release Release, s *participant, serves []string) bool {
	switch {
	case release.Installation == nil && release.Capacity == nil && release.Traffic == nil:
		return true
	case StartsOver(len(r.Releases), r.Leaving):
		return true
	case !s.traffic.exists:
		return r.serving
	}
	return len(serves) == 0 && !s.traffic.changed()
}

// without reports whether a Release is known to have no traffic in a cluster: none is requested, and the cluster reports no
// traffic or no Pods.
func (s *participant) without(cluster string) bool {
	t, c := s.traffic, s.capacity
	if !t.exists || !t.current || t.asked[cluster] > 0 || t.next[cluster] > 0 {
		return false
	}
	if t.asFound[cluster] && t.settling[cluster] {
		return false
	}
	if t.readyIn(cluster) {
		return true
	}
	return c.exists && c.current && c.reachable(cluster) && c.status[cluster] != nil && c.available[cluster] == 0
}

// replaced reports whether the contender and the incumbent serve in a cluster as the contender's step says, and one of them has
// traffic there. A cluster that neither runs in is replaced when the contender has completed.
func (r *rollout) replaced(cluster string) bool {
	if r.participants == nil || r.Blocked != "" {
		return false
	}
	var there, weighs bool
	for i, s := range r.participants {
		if r.roles[i] != Contender && r.roles[i] != Incumbent || !slices.Contains(s.capacity.clusters, cluster) {
			continue
		}
		if !s.servesIn(cluster) {
			return false
		}
		there = true
		weighs = weighs || s.traffic.asked[cluster] > 0
	}
	if !there {
		return r.serving && last(r.contender().Release)
	}
	return weighs
}

// servesIn reports whether a participant has at least the wanted capacity and traffic in a cluster.
func (s *participant) servesIn(cluster string) bool {
	c, t := s.capacity, s.traffic
	return installedIn(s.release, cluster) && c.enoughIn(cluster) && t.exists && t.current && t.readyIn(cluster) &&
		!t.settling[cluster] && t.asked[cluster] >= t.wanted && t.next[cluster] == t.asked[cluster]
}

// leavingWrite holds the new target specs of a Release that is being deleted: it gives up shared objects, and its traffic in
// the clusters where it is replaced.
func (r *rollout) leavingWrite(release Release, s *participant) Write {
	w := Write{Installation: installation(release, false, false)}
	if s.capacity.changed() {
		w.Capacity = capacitySpec(release, s.capacity)
	}
	if s.traffic.changed() {
		w.Traffic = trafficSpec(s.traffic)
	}
	return w
}

// departing is the condition StrategyExecuted of a Release that is being deleted.
func (r *rollout) departing(d Leaving, release Release, waits []string) shipper.Condition {
	c := shipper.Condition{
		Type: shipper.ReleaseStrategyExecuted, Status: corev1.ConditionFalse, Reason: shipper.StrategyInProgress,
	}
	switch {
	case release.Held != "":
		c.Message = "being deleted; kept: " + release.Held
	case d.Ready:
		c.Message = "being deleted; it has no traffic"
	case len(r.Releases) == 0:
		c.Message = fmt.Sprintf("being deleted; kept in clusters %s until another Release of the Application serves there", bracketed(waits))
	case len(waits) == 0:
		c.Message = fmt.Sprintf("being deleted; kept until Release %q is at its step", r.contender().Release.Name)
	default:
		c.Message = fmt.Sprintf("being deleted; kept in clusters %s until Release %q is at its step there and %s",
			bracketed(waits), r.contender().Release.Name, r.whoServes())
	}
	return c
}

// whoServes says which Release takes the traffic over: not the contender at a step where it has none, such as one that has failed.
func (r *rollout) whoServes() string {
	if i := r.incumbent(); i >= 0 && r.step != nil && r.step.Traffic.Contender == 0 {
		return fmt.Sprintf("Release %q has traffic", r.Releases[i].Release.Name)
	}
	return "has traffic"
}
