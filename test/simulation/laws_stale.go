// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/strategy"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const (
	// reportedWithin is how long after a change in a cluster a reconciler knows of it, without faults: statuses are written every 2 s.
	reportedWithin = 5 * time.Second
	// suspectedWithin is the same with faults: the next probe of a cluster, or the end of what delays it, shows that it cannot be known.
	suspectedWithin = time.Minute
)

// truth is whether a cluster has all that the last step of a Release asks for, by what its API server holds.
type truth struct {
	is    bool
	until time.Time // when it was so last, if it is no more
}

// observes keeps the truth about the newest Release, where it has waves. What other Releases are bears on it, too: some give way.
func (l *laws) observes(c change) {
	switch c.kind {
	case pods, endpoints, services, configMaps, kindOf("releases"):
	default:
		return
	}
	rel := l.newest()
	if !position.HasWaves(rel) {
		return
	}
	for cluster := range waves.Parse(rel) {
		h := l.world.hosts[cluster]
		if h == nil || c.host != management && c.host != cluster {
			continue
		}
		key := string(rel.UID) + " " + cluster
		t := l.truths[key]
		if was := t.is; was {
			t.until = c.at
		}
		t.is = l.lacksEnd(h, rel) == ""
		l.truths[key] = t
	}
}

// opens is the first half of law 19: the reconciler enters a wave only when each cluster of the wave before truly had everything, after
// that was requested, and a moment ago.
func (l *laws) opens(c change, old, rel *shipper.Release) {
	from, list := position.Of(old), l.targets[rel.Name]
	if position.Of(rel).Wave <= from.Wave || len(list) < 2 {
		return
	}
	since := list[len(list)-2].at
	for cluster, wave := range waves.Parse(old) {
		if wave != from.Wave || slices.Contains(rel.Status.FailedClusters, cluster) { // law 18 judges how many have failed
			continue
		}
		if lacks := l.lacked(old, cluster, since, c.at); lacks != "" {
			l.offend(19, "%s goes on to wave %d, and %s", rel.Name, position.Of(rel).Wave, lacks)
		}
	}
}

// lacked is why a cluster does not count as done at a time; empty if it does.
func (l *laws) lacked(rel *shipper.Release, cluster string, since, at time.Time) string {
	known := suspectedWithin
	if l.world.Network.calm("", reportedWithin) {
		known = reportedWithin
	}
	switch t := l.truths[string(rel.UID)+" "+cluster]; {
	case t.is:
		return ""
	case t.until.Before(since):
		return fmt.Sprintf("%s has not had all of it since that was requested", cluster)
	case at.Sub(t.until) > known:
		return fmt.Sprintf("%s has not had all of it for %s", cluster, at.Sub(t.until))
	}
	return ""
}

// follows is the second half of law 19: no more is requested of the newest Release in a cluster while more clusters of the waves before it
// truly lack something than its wave's maxConcurrency says. It is not judged while law 18 is not.
func (l *laws) follows(c change) {
	rel := l.newest()
	if !l.bounded(c, rel) || strategy.Complete(rel) || !isReconciler(c.by.process()) {
		return
	}
	raised := risen(c)
	s, assigned, list := rel.Spec.Environment.Strategy, waves.Parse(rel), l.targets[rel.Name]
	for _, cluster := range raised {
		wave, known := assigned[cluster]
		if !known || int(wave) >= len(s.Waves) {
			continue
		}
		var behind []string
		in := 0
		for other, its := range assigned {
			if its == wave {
				in++
			}
			if its < wave && !l.isStopped(other) && !slices.Contains(rel.Status.FailedClusters, other) {
				if lacks := l.lacked(rel, other, list[0].at, c.at); lacks != "" {
					behind = append(behind, lacks)
				}
			}
		}
		if bound := waves.Bound(&s.Waves[wave], in); len(behind) > bound {
			slices.Sort(behind)
			l.offend(19, "%s begins in %s, of a wave that lets %d be behind: %s", rel.Name, cluster, bound, strings.Join(behind, ", "))
		}
	}
}

// risen are the clusters in which a target asks for more than before.
func risen(c change) (out []string) {
	before, now := requested(c, false), requested(c, true)
	for cluster, n := range now {
		if n > before[cluster] { // a cluster that is added as it is found has nothing yet
			out = append(out, cluster)
		}
	}
	slices.Sort(out)
	return out
}

// requested is what a target asks for by cluster.
func requested(c change, afterwards bool) map[string]int64 {
	o, out := c.old, map[string]int64{}
	if afterwards {
		o = c.object
	}
	var it shipper.InstallationTarget
	var ct shipper.CapacityTarget
	var tt shipper.TrafficTarget
	switch c.kind {
	case kindOf("installationtargets"):
		convert(o, &it)
		for _, cluster := range it.Spec.Clusters {
			out[cluster] = 1
		}
	case kindOf("capacitytargets"):
		convert(o, &ct)
		for _, in := range ct.Spec.Clusters {
			out[in.Name] = int64(in.Percent)
		}
	case kindOf("traffictargets"):
		convert(o, &tt)
		for _, in := range tt.Spec.Clusters {
			out[in.Name] = int64(in.Weight)
		}
	}
	return out
}

// isStopped reports whether a RolloutBlock of the namespace names a cluster: nothing waits for it.
func (l *laws) isStopped(cluster string) bool {
	for _, o := range l.world.hosts[management].all(kindOf("rolloutblocks")) {
		var b shipper.RolloutBlock
		convert(o, &b)
		if b.Spec.Scope != nil && slices.Contains(b.Spec.Scope.Clusters, cluster) {
			return true
		}
	}
	return false
}
