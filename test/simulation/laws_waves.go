// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// waits is the first half of law 18: nothing of the newest Release is written in a cluster whose wave has never begun.
func (l *laws) waits(c change) {
	rel := l.newest()
	if c.object == nil || !isReconciler(c.by.process()) || !position.HasWaves(rel) {
		return
	}
	labels := c.object.GetLabels()
	if c.kind == configMaps && c.host != management && l.placedBy(c.object, rel) {
		labels = map[string]string{shipper.ReleaseLabel: rel.Name}
	}
	if labels[shipper.OwnedByLabel] != rel.Name && labels[shipper.ReleaseLabel] != rel.Name {
		return
	}
	wave, known := waves.Parse(rel)[c.host]
	begun := slices.ContainsFunc(l.targets[rel.Name], func(m moved) bool {
		return known && (m.to.Wave > wave || m.to.Wave == wave && (m.to.Step > 0 || l.mayBegin(rel, m)))
	})
	if !begun {
		l.offend(18, "%s %s of %s is written in %s, whose wave has not begun", c.kind, c.object.GetName(), rel.Name, c.host)
	}
}

// mayBegin reports whether the beforeTasks of a wave have passed since a Release was moved to its first step.
func (l *laws) mayBegin(rel *shipper.Release, m moved) bool {
	tasks := rel.Spec.Environment.Strategy.Waves[m.to.Wave].BeforeTasks
	if tasks == nil || l.wentBack(rel.Name) {
		return true
	}
	users := map[string]bool{}
	for _, o := range l.world.hosts[management].all(kindOf("approvals")) {
		var a shipper.Approval
		if convert(o, &a) && a.Spec.Release == rel.Name && a.Spec.Task == "Before" && *a.Spec.Wave == m.to.Wave &&
			a.Spec.By.Username != rel.Annotations[shipper.ReleaseRequestedByAnnotation] {
			users[a.Spec.By.Username] = true
		}
	}
	return len(users) >= int(tasks.Approvals) && time.Since(m.at) >= tasks.Wait.Value()
}

// begins is the second half of law 18, judged when a target of the newest Release is written. A move back is not bounded, nor is an abort.
func (l *laws) begins(c change) {
	rel := l.newest()
	if !l.bounded(c, rel) {
		return
	}
	s, assigned := rel.Spec.Environment.Strategy, waves.Parse(rel)
	for i := range s.Waves {
		var in, moving []string
		for cluster, wave := range assigned {
			if wave == int32(i) {
				in = append(in, cluster)
				if l.isMoving(rel, cluster) || waves.HasBudget(s) && l.isUnready(rel, cluster) {
					moving = append(moving, cluster)
				}
			}
		}
		bound := waves.Bound(&s.Waves[i], len(in)) + waves.Allowed(s, &s.Waves[i], len(in), len(assigned))
		if len(moving) > bound {
			slices.Sort(moving)
			l.offend(18, "%v of wave %s are moving or not ready, and %d may", moving, s.Waves[i].Name, bound)
		}
	}
}

// bounded reports whether a change is one of a target of the newest Release, and the order of its waves binds it.
func (l *laws) bounded(c change, rel *shipper.Release) bool {
	switch c.kind {
	case kindOf("installationtargets"), kindOf("capacitytargets"), kindOf("traffictargets"):
	default:
		return false
	}
	return c.object != nil && c.object.GetName() == rel.Name && position.HasWaves(rel) && rel.DeletionTimestamp == nil &&
		!l.wentBack(rel.Name) && !strategy.IsImmediateRollback(rel) &&
		(c.old == nil || c.old.GetGeneration() != c.object.GetGeneration())
}

// wentBack reports whether a Release was ever moved back.
func (l *laws) wentBack(release string) bool {
	list := l.targets[release]
	for i := 1; i < len(list); i++ {
		if list[i].to.Before(list[i-1].to) {
			return true
		}
	}
	return false
}

// isMoving reports whether what is requested in a cluster is no step, or no Pods were made for it yet.
func (l *laws) isMoving(rel *shipper.Release, cluster string) bool {
	m := l.world.hosts[management]
	var it shipper.InstallationTarget
	var ct shipper.CapacityTarget
	var tt shipper.TrafficTarget
	m.read(kindOf("installationtargets"), namespace, rel.Name, &it)
	m.read(kindOf("capacitytargets"), namespace, rel.Name, &ct)
	m.read(kindOf("traffictargets"), namespace, rel.Name, &tt)
	if !slices.Contains(it.Spec.Clusters, cluster) {
		return false
	}
	if rel.Spec.Environment.Resources != nil {
		return l.lacksPlaced(l.world.hosts[cluster], rel) != ""
	}
	percent, weight := int32(0), int32(0)
	for _, c := range ct.Spec.Clusters {
		if c.Name == cluster {
			percent = c.Percent
		}
	}
	for _, c := range tt.Spec.Clusters {
		if c.Name == cluster {
			weight = int32(c.Weight)
		}
	}
	return !slices.ContainsFunc(rel.Spec.Environment.Strategy.Steps, func(step shipper.RolloutStrategyStep) bool {
		return step.Capacity.Contender == percent && step.Traffic.Contender == weight
	})
}

// isUnready reports whether fewer Pods of a Release are ready in a cluster than are requested there.
func (l *laws) isUnready(rel *shipper.Release, cluster string) bool {
	var ct shipper.CapacityTarget
	l.world.hosts[management].read(kindOf("capacitytargets"), namespace, rel.Name, &ct)
	i := slices.IndexFunc(ct.Spec.Clusters, func(c shipper.ClusterCapacityTarget) bool { return c.Name == cluster })
	return i >= 0 && l.readyPods(cluster, rel.Name) < int(strategy.Pods(ct.Spec.Clusters[i].TotalReplicaCount, ct.Spec.Clusters[i].Percent))
}

// failsWithin is the last part of law 18: no more clusters are said to have failed than maxFailures allows.
func (l *laws) failsWithin(rel *shipper.Release) {
	failed := rel.Status.FailedClusters
	if len(failed) == 0 {
		return
	}
	if over := waves.Parse(rel).OverBudget(rel.Spec.Environment.Strategy, stamp.Clusters(rel), failed); over != "" {
		l.offend(18, "%s goes on although %s", rel.Name, over)
	}
}
