// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strconv"
	"time"

	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// ordered judges the order of moves inside a step, part of law 4: no Pods are requested where the chart was never installed, and no
// traffic where Pods are not ready.
func (l *laws) ordered(c change) {
	if c.object == nil {
		return
	}
	switch c.kind {
	case kindOf("installationtargets"):
		l.installs(c)
	case kindOf("capacitytargets"):
		l.requestsPods(c)
	case kindOf("traffictargets"):
		l.requestsTraffic(c)
	}
}

// installs notes where a chart is said to be installed.
func (l *laws) installs(c change) {
	var it shipper.InstallationTarget
	convert(c.object, &it)
	for _, cluster := range it.Status.Clusters {
		if shipper.ConditionTrue(cluster.Conditions, shipper.TargetReady) {
			l.installed[string(it.UID)+" "+cluster.Name] = true
		}
	}
}

func (l *laws) requestsPods(c change) {
	var before, now shipper.CapacityTarget
	convert(c.object, &now)
	if !convert(c.old, &before) || !isReconciler(c.by.process()) || before.Generation == now.Generation {
		return
	}
	it := l.world.hosts[management].get(kindOf("installationtargets"), now.Namespace, now.Name)
	for _, cluster := range now.Spec.Clusters {
		i := slices.IndexFunc(before.Spec.Clusters, func(b shipper.ClusterCapacityTarget) bool { return b.Name == cluster.Name })
		if i < 0 || cluster.Percent <= before.Spec.Clusters[i].Percent || it == nil || l.installed[string(it.GetUID())+" "+cluster.Name] {
			continue
		}
		l.offend(4, "%s gets %d %% of its Pods in %s, where its chart was never installed", now.Name, cluster.Percent, cluster.Name)
	}
}

func (l *laws) requestsTraffic(c change) {
	var before, now shipper.TrafficTarget
	convert(c.object, &now)
	if !convert(c.old, &before) || !isReconciler(c.by.process()) || before.Generation == now.Generation || l.fails {
		return
	}
	for _, cluster := range now.Spec.Clusters {
		i := slices.IndexFunc(before.Spec.Clusters, func(b shipper.ClusterTrafficTarget) bool { return b.Name == cluster.Name })
		if i < 0 || before.Spec.Clusters[i].AsFound || cluster.Weight <= before.Spec.Clusters[i].Weight {
			continue
		}
		if ready, want := l.readyPods(cluster.Name, now.Name), l.leastPods(now.Name, cluster); ready < want {
			l.offend(4, "%s gets weight %d in %s, where %d of its Pods are ready, not %d", now.Name, cluster.Weight, cluster.Name, ready, want)
		}
	}
}

// readyPods counts the ready Pods of a Release in a cluster.
func (l *laws) readyPods(cluster, release string) (count int) {
	h := l.world.hosts[cluster]
	if h == nil {
		return 0
	}
	for _, o := range h.all(pods) {
		if o.GetLabels()[shipper.ReleaseLabel] == release && podReady(o) {
			count++
		}
	}
	return count
}

// leastPods is how many Pods of a Release are ready in a cluster before its weight goes up there: those that the step asks for. Of steps
// that were requested since a reconciler may know of them, those count that allow the weight.
func (l *laws) leastPods(release string, asked shipper.ClusterTrafficTarget) int {
	var ct shipper.CapacityTarget
	l.world.hosts[management].read(kindOf("capacitytargets"), namespace, release, &ct)
	i := slices.IndexFunc(ct.Spec.Clusters, func(c shipper.ClusterCapacityTarget) bool { return c.Name == asked.Name })
	newest := l.newest()
	if i < 0 || newest.Spec.Environment.Strategy == nil {
		return 0
	}
	least, known, list := int32(100), false, l.targets[newest.Name]
	for n, m := range list {
		step, is := stepIn(newest, m.to, asked.Name)
		if n+1 < len(list) && time.Since(list[n+1].at) > mostStale || !is {
			continue // over for long enough
		}
		percent, weight := step.Capacity.Incumbent, step.Traffic.Incumbent
		if release == newest.Name {
			percent, weight = step.Capacity.Contender, step.Traffic.Contender
		}
		if uint32(weight) >= asked.Weight {
			least, known = min(least, percent), true
		}
	}
	if !known {
		return 0 // the other laws say how much it may be
	}
	return int(strategy.Pods(l.besides(ct.Spec.Clusters[i], release), least))
}

// besides is how many Pods of a Release have its label at full capacity: those of a workload in place have none.
func (l *laws) besides(of shipper.ClusterCapacityTarget, release string) int32 {
	total := int64(0)
	for _, o := range l.world.hosts[of.Name].all("apps/deployments") {
		n, err := strconv.ParseInt(o.GetAnnotations()[shipper.ReplicasAnnotation], 10, 32)
		if err != nil || o.GetLabels()[shipper.ReleaseLabel] != release {
			continue
		}
		total += n
	}
	if total == 0 {
		return of.TotalReplicaCount
	}
	return int32(total)
}
