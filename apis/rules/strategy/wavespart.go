// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// located is a Release, with what is said of it by cluster.
type located struct {
	Release
	chosen   map[string]bool
	assigned waves.Assigned
	failures waves.Failures
	// listed are the clusters in its InstallationTarget; the others are entries of the specs and the statuses of its targets.
	listed         map[string]bool
	installation   map[string]shipper.ClusterInstallationStatus
	capacity       map[string]shipper.ClusterCapacityTarget
	capacityStatus map[string]shipper.ClusterCapacityStatus
	traffic        map[string]shipper.ClusterTrafficTarget
	trafficStatus  map[string]shipper.ClusterTrafficStatus
	// ahead is true while beforeTasks keep the wave of the position from beginning: it counts as a later one.
	ahead bool
}

func locate(r Release) *located {
	l := &located{Release: r, chosen: map[string]bool{}, listed: map[string]bool{}}
	for _, cluster := range stamp.Clusters(r.Release) {
		l.chosen[cluster] = true
	}
	if position.HasWaves(r.Release) {
		l.assigned, l.failures = waves.Parse(r.Release), waves.FailedIn(r.Release)
	}
	if it := r.Installation; it != nil {
		for _, cluster := range it.Spec.Clusters {
			l.listed[cluster] = true
		}
		l.installation = byName(it.Status.Clusters, func(c shipper.ClusterInstallationStatus) string { return c.Name })
	}
	if ct := r.Capacity; ct != nil {
		l.capacity = byName(ct.Spec.Clusters, func(c shipper.ClusterCapacityTarget) string { return c.Name })
		l.capacityStatus = byName(ct.Status.Clusters, func(c shipper.ClusterCapacityStatus) string { return c.Name })
	}
	if tt := r.Traffic; tt != nil {
		l.traffic = byName(tt.Spec.Clusters, func(c shipper.ClusterTrafficTarget) string { return c.Name })
		l.trafficStatus = byName(tt.Status.Clusters, func(c shipper.ClusterTrafficStatus) string { return c.Name })
	}
	return l
}

func byName[T any](all []T, name func(T) string) map[string]T {
	out := make(map[string]T, len(all))
	for _, one := range all {
		out[name(one)] = one
	}
	return out
}

// targeted are the clusters that the specs of its targets list.
func (l *located) targeted() map[string]bool {
	out := maps.Clone(l.listed)
	for cluster := range l.capacity {
		out[cluster] = true
	}
	for cluster := range l.traffic {
		out[cluster] = true
	}
	return out
}

// isBegun reports whether something of the Release was requested in a cluster.
func (l *located) isBegun(cluster string) bool {
	return l.listed[cluster] || l.capacity[cluster].Percent > 0 || l.traffic[cluster].Weight > 0
}

// runsIn reports whether the Release may have something in a cluster.
func (l *located) runsIn(cluster string) bool {
	if l.isBegun(cluster) || l.chosen[cluster] && (Complete(l.Release.Release) || !l.Scheduled()) {
		return true
	}
	if !l.capacity[cluster].AsFound {
		return false
	}
	status, known := l.capacityStatus[cluster]
	return !known || status.AvailableReplicas > 0
}

// stepIn is waves.StepIn. A wave whose beforeTasks have not passed has not begun.
func (l *located) stepIn(cluster string) (step int32, reached bool) {
	if l.ahead && l.assigned[cluster] == position.Of(l.Release.Release).Wave {
		return 0, false
	}
	return l.assigned.StepIn(l.Release.Release, cluster)
}

// part is the state of one cluster: the Releases that run there, or may, with what is known of them there alone.
func (w *byWave) part(cluster string) *part {
	p := &part{cluster: cluster, wave: -1}
	o := Observed{Blocked: cmp.Or(w.Blocked, w.BlockedIn[cluster])}
	newest := len(w.live) - 1
	for i, release := range w.live {
		if i < newest && !release.runsIn(cluster) {
			continue
		}
		o.Releases, p.index = append(o.Releases, release.in(cluster)), append(p.index, i)
	}
	if incumbent := incumbentOf(o.Releases); incumbent != nil {
		if _, reached := w.live[newest].stepIn(cluster); !reached {
			keepAhead(&o.Releases[len(o.Releases)-1], incumbent)
		}
	}
	for i, release := range w.leaving {
		if release.runsIn(cluster) {
			o.Leaving, p.leaving = append(o.Leaving, release.in(cluster)), append(p.leaving, i)
		}
	}
	p.rollout = newRollout(o, w.now)
	return p
}

// incumbentOf is the newest complete Release before the last; nil when there is none.
func incumbentOf(releases []Release) *shipper.Release {
	if i := incumbentIn(releases); i >= 0 {
		return releases[i].Release
	}
	return nil
}

// incumbentIn is the index of incumbentOf; -1 when there is none.
func incumbentIn(releases []Release) int {
	for i, r := range slices.Backward(releases[:len(releases)-1]) {
		if Complete(r.Release) || assumedComplete(r.Release) {
			return i
		}
	}
	return -1
}

// IncumbentIn is the index of the Release that the newest one replaces in a cluster; -1 when there is none. rels are oldest first.
func IncumbentIn(rels []*shipper.Release, cluster string) int {
	for i := len(rels) - 2; i >= 0; i-- {
		l := locate(Release{Release: rels[i]})
		if there := l.releaseIn(cluster); l.chosen[cluster] && (Complete(there) || assumedComplete(there)) {
			return i
		}
	}
	return -1
}

// keepAhead makes a cluster of a wave after the position keep its incumbent as it serves: with all Pods, and the weight of its last step.
func keepAhead(contender *Release, incumbent *shipper.Release) {
	weight := int32(100)
	if all := steps(incumbent); len(all) > 0 && all[len(all)-1].Traffic.Contender > 0 {
		weight = all[len(all)-1].Traffic.Contender
	}
	contender.Release.Spec.Environment.Strategy.Steps = incumbentAlone(weight)
}

// incumbentAlone is a step that asks nothing of the contender, and all Pods and a weight of the incumbent.
func incumbentAlone(weight int32) []shipper.RolloutStrategyStep {
	return []shipper.RolloutStrategyStep{{
		Capacity: shipper.RolloutStrategyStepValue{Incumbent: 100}, Traffic: shipper.RolloutStrategyStepValue{Incumbent: weight},
	}}
}

// in is the Release as it is in one cluster, without waves: complete if it completed there, and at the step that it is to have there.
func (l *located) in(cluster string) Release {
	out := Release{Held: l.Held, Release: l.releaseIn(cluster)}
	if it := l.Installation; it != nil {
		is := *it
		is.Spec.Clusters, is.Status.Clusters, is.Status.Conditions = []string{}, nil, nil
		if l.listed[cluster] {
			is.Spec.Clusters = []string{cluster}
		}
		if c, known := l.installation[cluster]; known {
			is.Status.Clusters, is.Status.Conditions = []shipper.ClusterInstallationStatus{c}, c.Conditions
		}
		out.Installation = &is
	}
	if ct := l.Capacity; ct != nil {
		is := *ct
		is.Spec.Clusters, is.Status.Clusters, is.Status.Conditions = []shipper.ClusterCapacityTarget{}, nil, nil
		if c, there := l.capacity[cluster]; there {
			is.Spec.Clusters = append(is.Spec.Clusters, c)
		}
		if c, known := l.capacityStatus[cluster]; known {
			is.Status.Clusters, is.Status.Conditions = []shipper.ClusterCapacityStatus{c}, c.Conditions
		}
		out.Capacity = &is
	}
	if tt := l.Traffic; tt != nil {
		is := *tt
		is.Spec.Clusters, is.Status.Clusters, is.Status.Conditions = []shipper.ClusterTrafficTarget{}, nil, nil
		if c, there := l.traffic[cluster]; there {
			is.Spec.Clusters = append(is.Spec.Clusters, c)
		}
		if c, known := l.trafficStatus[cluster]; known {
			is.Status.Clusters, is.Status.Conditions = []shipper.ClusterTrafficStatus{c}, c.Conditions
		}
		out.Traffic = &is
	}
	return out
}

// releaseIn is the Release without its targets, as in.
func (l *located) releaseIn(cluster string) *shipper.Release {
	rel := l.Release.Release
	out := *rel
	out.Annotations = maps.Clone(rel.Annotations)
	if delete(out.Annotations, shipper.ReleaseWavesAnnotation); l.chosen[cluster] {
		out.Annotations[shipper.ReleaseClustersAnnotation] = cluster
	}
	if !position.HasWaves(rel) {
		return &out
	}
	out.Spec.Environment.Strategy = new(*rel.Spec.Environment.Strategy)
	out.Spec.Environment.Strategy.Waves = nil
	wave, known := l.assigned[cluster]
	end := position.Position{Wave: wave, Step: rel.Spec.Environment.Strategy.LastStep()}
	achieved := position.Achieved(rel)
	switch {
	case l.failures.Lacks(cluster), achieved.Before(position.Position{Wave: wave}):
		out.Status.AchievedStep = nil
	case !achieved.Before(end):
		out.Status.AchievedStep = &shipper.AchievedStep{Step: end.Step}
	}
	step, reached := l.stepIn(cluster)
	if out.Spec.TargetStep = step; !reached {
		out.Spec.Environment.Strategy.Steps = incumbentAlone(100)
		out.Status.AchievedStep = nil
	}
	if known && reached && !Complete(rel) && !l.failures.Lacks(cluster) && !achieved.Before(end) && !position.Of(rel).Before(end) {
		others := slices.DeleteFunc(slices.Clone(rel.Status.Conditions), func(c shipper.Condition) bool {
			return c.Type == shipper.ReleaseComplete
		})
		done := shipper.Condition{Type: shipper.ReleaseComplete, Status: corev1.ConditionTrue}
		out.Status.Conditions = shipper.SetCondition(others, done, rel.CreationTimestamp)
	}
	return &out
}
