// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/strategy"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// releaseChange judges laws 3, 4, 8 and 9.
func (l *laws) releaseChange(c change) {
	old, rel := &shipper.Release{}, &shipper.Release{}
	existed, exists := convert(c.old, old), convert(c.object, rel)
	name := c.any().GetName()
	byReconciler := isReconciler(c.by.process())
	switch {
	case !exists:
		delete(l.targets, name)
		return
	case !existed:
		l.targets[name] = []moved{{c.at, position.Of(rel)}}
		if byReconciler {
			l.unblocked(c, "creates Release "+name)
		}
		return
	}
	if position.Of(old) != position.Of(rel) {
		l.targets[name] = append(l.targets[name], moved{c.at, position.Of(rel)})
		if byReconciler {
			l.moves(c, old, rel)
			l.opens(c, old, rel)
		} else {
			l.raised = map[string]bool{}
		}
	}
	if byReconciler && !l.fails {
		l.blameless(old, rel)
	}
	l.achieves(old, rel)
	l.failsWithin(rel)
}

// moves judges a change of the position by the reconciler.
func (l *laws) moves(c change, old, rel *shipper.Release) {
	at, to, s := position.Of(old), position.Of(rel), rel.Spec.Environment.Strategy
	l.unblocked(c, fmt.Sprintf("moves %s from %s to %s", rel.Name, at.In(s), to.In(s)))
	if to.Before(at) {
		return // law 8
	}
	raise := fmt.Sprintf("%s is raised from %s to %s", rel.Name, at.In(s), to.In(s))
	key := fmt.Sprint(rel.UID, " ", to)
	p, a, from := old.Status.Progress, old.Status.AchievedStep, at.Step
	next, more := at.Next(s)
	after := shipper.Duration("")
	if len(s.Steps) > 0 {
		after = s.Steps[from].After
	}
	if (s.Advance == shipper.AdvanceAutomatic || s.Advance == "" && len(s.Steps) == 0) && after == "" {
		after = "0s"
	}
	switch {
	case l.raised[key]:
		l.offend(4, "%s twice", raise)
	case !more || to != next:
		l.offend(4, "%s at once", raise)
	case a == nil || position.Achieved(old) != at || p == nil || p.Step != from || p.Wave != at.Wave || p.ConvergedTime == nil:
		l.offend(4, "%s, which is not achieved: %+v, %+v", raise, a, p)
	case p.MovedBack:
		l.offend(4, "%s after a move back", raise)
	case old.Spec.Hold != "":
		l.offend(4, "%s, which is held", raise)
	case after == "":
		l.offend(4, "%s, which waits for a command", raise)
	case c.at.Before(p.ConvergedTime.Add(after.Value() - time.Second)): // the time is rounded up to a second
		l.offend(4, "%s %s after %s", raise, c.at.Sub(p.ConvergedTime.Time), p.ConvergedTime)
	case c.at.Before(p.ConvergedTime.Add(s.WaitAt(at.Wave, from).Value() - time.Second)):
		l.offend(4, "%s, which waits %s after %s", raise, s.WaitAt(at.Wave, from), p.ConvergedTime)
	case !p.Approvals.Enough(s.StepAt(at.Wave, from).RequiredApprovals()):
		l.offend(4, "%s, which is not approved: %+v", raise, p.Approvals)
	case !checksPassed(s, at, p):
		l.offend(4, "%s, whose checks have not passed: %+v", raise, p.Checks)
	}
	l.raised[key] = true
}

// checksPassed reports whether all checks of a position that count have passed.
func checksPassed(s *shipper.RolloutStrategy, at position.Position, p *shipper.ReleaseProgress) bool {
	want, last := []shipper.StepCheck{}, int(at.Step) >= len(s.Steps)-1
	if len(s.Steps) > 0 {
		want = slices.Clone(s.Steps[at.Step].Checks)
	}
	switch {
	case last && len(s.Waves) > 0 && s.Waves[at.Wave].AfterTasks != nil:
		want = append(want, s.Waves[at.Wave].AfterTasks.Checks...)
	case !last && s.Steps[at.Step].Traffic.Contender > 0:
		want = append(want, s.Checks...)
	}
	return !slices.ContainsFunc(want, func(c shipper.StepCheck) bool {
		name := c.Name
		if name == "" {
			name = c.Check[strings.LastIndex(c.Check, "/")+1:]
		}
		return !c.DryRun && !slices.ContainsFunc(p.Checks, func(is shipper.ReleaseCheck) bool {
			return is.Name == name && is.Phase == shipper.CheckPassed
		})
	})
}

// blameless is law 8, in stories in which nothing fails but the network.
func (l *laws) blameless(old, rel *shipper.Release) {
	if position.Of(rel).Before(position.Of(old)) {
		l.offend(8, "the reconciler moves %s back from %v to %v", rel.Name, position.Of(old), position.Of(rel))
	}
	if p := rel.Status.Progress; p != nil && p.Failure != nil && (old.Status.Progress == nil || old.Status.Progress.Failure == nil) {
		l.offend(8, "%s fails: %+v", rel.Name, p.Failure)
	}
	newest := rel.Annotations[shipper.ReleaseGenerationAnnotation] == l.newest().Annotations[shipper.ReleaseGenerationAnnotation]
	app := l.world.hosts[management].get(kindOf("applications"), namespace, appName)
	if rel.DeletionTimestamp != nil && old.DeletionTimestamp == nil && newest && app != nil && app.GetDeletionTimestamp() == nil {
		l.offend(8, "the reconciler deletes %s", rel.Name)
	}
}

// newest is the Release of the Application with the highest generation; it is empty if there is none.
func (l *laws) newest() *shipper.Release {
	newest, highest := &shipper.Release{}, -1
	for _, o := range l.world.hosts[management].all(kindOf("releases")) {
		var generation int
		if _, err := fmt.Sscan(o.GetAnnotations()[shipper.ReleaseGenerationAnnotation], &generation); err != nil ||
			o.GetLabels()[shipper.AppLabel] != appName || generation < highest {
			continue
		}
		newest, highest = &shipper.Release{}, generation
		convert(o, newest)
	}
	return newest
}

// achieves is law 9: what a status says newly is so in the clusters.
func (l *laws) achieves(old, rel *shipper.Release) {
	a := rel.Status.AchievedStep
	if a == nil || rel.Labels[shipper.AppLabel] != appName || rel.Spec.Environment.Resources != nil || rel.DeletionTimestamp != nil ||
		old.Status.AchievedStep != nil && *old.Status.AchievedStep == *a || !l.world.Network.calm("", mostStale) {
		return
	}
	if int(a.Step) >= len(rel.Spec.Environment.Strategy.Steps) || l.movedLately(rel.Name) || l.newest().Name != rel.Name {
		return
	}
	step := rel.Spec.Environment.Strategy.Steps[a.Step]
	for _, cluster := range strings.Split(rel.Annotations[shipper.ReleaseClustersAnnotation], ",") {
		h := l.world.hosts[cluster]
		if h == nil || position.HasWaves(rel) && waves.Parse(rel)[cluster] != a.Wave ||
			slices.Contains(rel.Status.FailedClusters, cluster) {
			continue
		}
		if lacks := l.lacks(h, rel, step); lacks != "" {
			l.offend(9, "%s is said to have achieved step %d, and in %s %s", rel.Name, a.Step, cluster, lacks)
		}
	}
}

// lacks is what a Release does not have that it has at a step; empty if it has all.
func (l *laws) lacks(h *host, rel *shipper.Release, step shipper.RolloutStrategyStep) string {
	total := 1
	if count, ok := (*rel.Spec.Environment.Values)["replicaCount"]; ok {
		_, _ = fmt.Sscan(fmt.Sprint(count), &total)
	}
	want := int(strategy.Pods(int32(total), step.Capacity.Contender))
	own := 0
	for _, o := range h.all(pods) {
		if o.GetLabels()[shipper.ReleaseLabel] == rel.Name && podReady(o) {
			own++
		}
	}
	if own < want {
		return fmt.Sprintf("%d of its Pods are ready, not %d", own, want)
	}
	for _, service := range l.services {
		if lacks := l.lacksTraffic(h, service, rel, step); lacks != "" {
			return "of Service " + service + " " + lacks
		}
	}
	return ""
}

// lacksTraffic is lacks for the traffic of a Service.
func (l *laws) lacksTraffic(h *host, service string, rel *shipper.Release, step shipper.RolloutStrategyStep) string {
	serving := map[bool]int{}
	for _, o := range h.all(endpoints) {
		if o.GetLabels()[discoveryv1.LabelServiceName] != service {
			continue
		}
		var slice discoveryv1.EndpointSlice
		convert(o, &slice)
		for _, pod := range readyEndpoints(&slice) {
			if release := l.podRelease[h.name+" "+pod]; release == rel.Name || !l.givesWay(release) {
				serving[release == rel.Name]++
			}
		}
	}
	others := serving[false]
	switch {
	case h.get(services, namespace, service) == nil:
		return "" // of another chart
	case step.Traffic.Contender > 0 && serving[true] == 0:
		return "none of its Pods serves"
	case step.Traffic.Contender == 0 && step.Traffic.Incumbent > 0 && serving[true] > 0 && others > 0:
		return fmt.Sprintf("%d of its Pods serve", serving[true])
	case step.Traffic.Incumbent == 0 && others > 0:
		return fmt.Sprintf("%d Pods of others serve", others)
	}
	return ""
}

// givesWay reports whether a Release is kept until the newest is at its step: it is being deleted, or was superseded before it completed.
func (l *laws) givesWay(release string) bool {
	var rel shipper.Release
	return !l.world.hosts[management].read(kindOf("releases"), namespace, release, &rel) || rel.DeletionTimestamp != nil ||
		!shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseComplete)
}

// movedLately reports whether targetStep of a Release has been another one a moment ago.
func (l *laws) movedLately(release string) bool {
	list := l.targets[release]
	return len(list) > 0 && time.Since(list[len(list)-1].at) < mostStale && len(list) > 1
}

// targetChange judges laws 2, 3 and 4 for CapacityTargets and TrafficTargets.
func (l *laws) targetChange(c change) {
	if c.kind == kindOf("traffictargets") {
		l.weighs(c)
	}
	if c.object == nil || c.old == nil || !isReconciler(c.by.process()) || c.object.GetGeneration() == c.old.GetGeneration() {
		return
	}
	name := c.object.GetName()
	if c.object.GetDeletionTimestamp() == nil {
		l.unblocked(c, "changes the spec of "+c.kind+" "+name)
	}
	rel := l.newest()
	if rel.Name != name || rel.Spec.Environment.Strategy == nil || !l.world.Network.calm(c.by.process(), mostStale) {
		return
	}
	switch c.kind {
	case kindOf("capacitytargets"):
		var before, now shipper.CapacityTarget
		convert(c.old, &before)
		convert(c.object, &now)
		for _, cluster := range now.Spec.Clusters {
			i := slices.IndexFunc(before.Spec.Clusters, func(b shipper.ClusterCapacityTarget) bool { return b.Name == cluster.Name })
			capacity, _ := l.allowed(rel, cluster.Name)
			if i >= 0 && cluster.Percent > before.Spec.Clusters[i].Percent && cluster.Percent > capacity {
				l.offend(4, "%s gets %d %% of its Pods in %s, where its step allows %d %%", name, cluster.Percent, cluster.Name, capacity)
			}
		}
	case kindOf("traffictargets"):
		var before, now shipper.TrafficTarget
		convert(c.old, &before)
		convert(c.object, &now)
		for _, cluster := range now.Spec.Clusters {
			i := slices.IndexFunc(before.Spec.Clusters, func(b shipper.ClusterTrafficTarget) bool { return b.Name == cluster.Name })
			_, traffic := l.allowed(rel, cluster.Name)
			if i >= 0 && cluster.Weight > before.Spec.Clusters[i].Weight && int32(cluster.Weight) > traffic {
				l.offend(4, "%s gets weight %d in %s, where its step allows %d", name, cluster.Weight, cluster.Name, traffic)
			}
		}
	}
}

// allowed is what the steps allow in a cluster that a Release was to have since a reconciler may know of them.
func (l *laws) allowed(rel *shipper.Release, cluster string) (capacity, traffic int32) {
	list := l.targets[rel.Name]
	for i, m := range list {
		step, is := stepIn(rel, m.to, cluster)
		if i+1 < len(list) && time.Since(list[i+1].at) > mostStale || !is {
			continue // over for long enough
		}
		capacity, traffic = max(capacity, step.Capacity.Contender), max(traffic, step.Traffic.Contender)
	}
	return capacity, traffic
}

// stepIn is the step of a Release in a cluster at a position; is is false if there is none. In a wave after the position the Release before
// has everything.
func stepIn(rel *shipper.Release, at position.Position, cluster string) (step shipper.RolloutStrategyStep, is bool) {
	there := *rel
	at.Set(&there)
	n, reached := waves.StepIn(&there, cluster)
	all := rel.Spec.Environment.Strategy.Steps
	switch {
	case !reached:
		step.Capacity.Incumbent, step.Traffic.Incumbent = 100, 100
		return step, true
	case int(n) >= len(all):
		return step, false
	}
	return all[n], true
}
