// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/progress"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/history"
)

// releasesPlan is what one pass does.
type releasesPlan struct {
	// verdict is what blocks mean for the rollout of the newest Release in all clusters; blocked says which stop it, and is empty when
	// none does.
	verdict block.Verdict
	blocked string
	// blockedIn are the clusters that blocks hold alone, with the message of each.
	blockedIn block.Clusters
	// clusters says which clusters Releases get and lose.
	clusters clustersPlan
	// targets lists what is missing.
	targets []missingTargets
	// remove are the Releases being deleted of which Shipper's finalizer is to be removed.
	remove []*shipper.Release
	// rollout is what the strategy asks of targets that exist, with one outcome for each live Release.
	rollout strategy.Plan
	// progress is what the newest Release does by itself.
	progress progress.Decision
	// checks are those of the newest Release's step.
	checks checksPlan
}

// missingTargets is a Release of which targets are missing.
type missingTargets struct {
	// index of the Release among the live ones.
	index int
	// clusters it is to have. none is true if they may be none, because no wave that has any has begun.
	clusters []string
	none     bool
}

// writes reports whether anything but status is to be written.
func (p releasesPlan) writes() bool {
	return p.clusters.writes() || len(p.targets) > 0 || len(p.remove) > 0 || p.rollout.Writes() || p.progress.Acts() || p.checks.run != nil
}

// planReleases is pure.
func planReleases(s *scope, now metav1.Time) releasesPlan {
	var p releasesPlan
	newest, view := s.history.Newest(), s.view(now)
	leaving := view.HoldDeleted(s.history.Leaving)
	if newest == nil {
		p.rollout = strategy.Make(strategy.Observed{Leaving: leaving}, now)
		p.remove = free(leaving, p.rollout.Leaving)
		return p
	}
	p.verdict, p.blockedIn = view.OfRollout().Split(newest)
	if p.verdict.Blocked() {
		p.blocked = p.verdict.Message()
	}
	p.checks = planChecks(s, now)
	observed := strategy.Observed{
		Releases: view.Hold(s.history.Live), Leaving: leaving, Blocked: p.blocked, Returning: returning(s.app, newest),
		Approvals: s.approvals, Checks: p.checks.state, BlockedIn: p.blockedIn,
	}
	p.rollout = strategy.Make(observed, now)
	p.remove = free(leaving, p.rollout.Leaving)
	p.progress = planProgress(s, p, now)
	p.checks = p.checks.begins(s, p.progress, p.blocked)
	p.clusters = planClusters(s, p.rollout, p.blocked != "" || len(p.blockedIn) > 0, now)
	if p.blocked != "" {
		return p
	}
	p.targets = p.missing(s)
	return p
}

// planProgress decides what the newest Release does by itself. An abort that is not done with goes first.
func planProgress(s *scope, p releasesPlan, now metav1.Time) progress.Decision {
	newest, view := s.history.Newest(), s.view(now)
	if !strategy.ByItself(newest.Spec.Environment.Strategy) || returning(s.app, newest) {
		return progress.Decision{}
	}
	up, back, abort := view.OfMoves(newest)
	return progress.Decide(progress.Observed{
		Release: newest, Step: p.rollout.Step, WritesHeldBy: p.blocked, UpHeldBy: up, BackHeldBy: back, AbortHeldBy: abort, Since: s.since,
	}, now.Time)
}

// free are the Releases being deleted that serve nowhere, that no block holds, and that have no other finalizer. Shipper's finalizer is
// removed last: otherwise a user with a finalizer of their own could end a deletion under a block.
func free(leaving []strategy.Release, departures []strategy.Leaving) []*shipper.Release {
	var out []*shipper.Release
	for i, r := range leaving {
		if departures[i].Ready && r.Held == "" && len(r.Release.Finalizers) == 1 {
			out = append(out, r.Release)
		}
	}
	return out
}

// returning reports whether a Release newer than newest was deleted and the Application does not know of it yet.
func returning(app *shipper.Application, newest *shipper.Release) bool {
	highest, known, err := stamp.HighestObserved(app)
	generation, broken := stamp.Generation(newest)
	return err == nil && broken == nil && known && generation < highest
}

// missing lists the Releases that are to run, or may, and lack targets, the newest first. Where a target of the same name
// is in the way, its end is awaited first.
func (p releasesPlan) missing(s *scope) []missingTargets {
	var out []missingTargets
	for i, r := range slices.Backward(s.history.Live) {
		role := p.rollout.Outcomes[i].Role
		if r.Scheduled() || len(s.history.Foreign[r.Release.Name]) > 0 ||
			(role != strategy.Contender && role != strategy.Incumbent && !r.Lost()) {
			continue
		}
		c := missingTargets{index: i, clusters: stamp.Clusters(r.Release)}
		if role != strategy.Contender && len(p.blockedIn.Of(c.clusters)) > 0 {
			continue // what an earlier Release lost would be installed again in a cluster that a block holds
		}
		assigned := waves.Parse(r.Release)
		if role == strategy.Contender && p.clusters.choice != nil {
			c.clusters, assigned = p.clusters.choice, p.clusters.assigned[i]
		}
		if position.HasWaves(r.Release) && len(c.clusters) > 0 {
			c.clusters, c.none = assigned.Reached(position.Of(r.Release), c.clusters), true
		}
		if len(c.clusters) > 0 || c.none {
			out = append(out, c)
		}
	}
	return out
}

// installationTarget is the missing InstallationTarget of rel; regions are nil where none has values of its own. It cannot go before
// what it installs does, which its reconciler would have to write before it installs anything.
func installationTarget(
	rel *shipper.Release, clusters []string, regions map[string]string, newest bool,
) *shipper.InstallationTarget {
	env := rel.Spec.Environment.DeepCopy()
	chart := env.Chart.Reference()
	it := &shipper.InstallationTarget{ObjectMeta: targetMeta(rel)}
	it.Finalizers = []string{shipper.InstallationFinalizer}
	if whose, said := rel.Annotations[shipper.ReleaseLabelPrecedenceAnnotation]; said {
		metav1.SetMetaDataAnnotation(&it.ObjectMeta, shipper.ReleaseLabelPrecedenceAnnotation, whose)
	}
	if position.HasWaves(rel) && newest { // each cluster is added when it may begin
		clusters = nil
	}
	it.Spec = shipper.InstallationTargetSpec{
		Clusters: append([]string{}, clusters...), CanOverride: newest, Chart: &chart, Values: env.Values,
		ValuesPerRegion: env.ValuesPerRegion, ValuesPerCluster: env.ValuesPerCluster, Regions: regions,
		ValuesFrom: env.ValuesFrom, ValuesDigests: env.ValuesDigests, Overrides: rel.DeepCopy().Spec.Overrides,
	}
	return it
}

// resourcesTarget is the missing InstallationTarget of a Release with resources. The only Release of an Application gets its clusters at
// once; another one lists none at first, for an older Release may have them all.
func resourcesTarget(h history.History, rel *shipper.Release, clusters []string) *shipper.InstallationTarget {
	env := rel.Spec.Environment.DeepCopy()
	it := &shipper.InstallationTarget{ObjectMeta: targetMeta(rel)}
	it.Finalizers = []string{shipper.InstallationFinalizer}
	it.Spec = shipper.InstallationTargetSpec{Clusters: []string{}, CanOverride: rel == h.Newest(), Resources: &shipper.TargetResources{
		Apply: env.Apply, Removal: env.Resources.Removal, Ready: env.Resources.Ready, Snapshot: env.ResourcesDigest,
	}, Overrides: rel.DeepCopy().Spec.Overrides}
	if len(h.All) == 1 {
		it.Spec.Clusters = append(it.Spec.Clusters, clusters...)
	}
	if env.Strategy != nil {
		it.Spec.Resources.UnavailablePeriod = env.Strategy.UnavailablePeriod
	}
	return it
}

// capacityTarget is the missing CapacityTarget of rel, with the number of Pods that all of it is in each cluster. It asks for
// nothing yet: more Pods may run than the management cluster knows of, above all after a restore, and they are found first.
func capacityTarget(rel *shipper.Release, clusters []string, replicas map[string]int32) *shipper.CapacityTarget {
	ct := &shipper.CapacityTarget{ObjectMeta: targetMeta(rel)}
	ct.Finalizers = []string{shipper.RolloutFinalizer}
	ct.Spec.Clusters = []shipper.ClusterCapacityTarget{}
	for _, cluster := range clusters {
		ct.Spec.Clusters = append(ct.Spec.Clusters, shipper.ClusterCapacityTarget{
			Name: cluster, TotalReplicaCount: replicas[cluster], AsFound: true,
		})
	}
	return ct
}

// trafficTarget is the missing TrafficTarget of rel, which asks for nothing yet, as its CapacityTarget does.
func trafficTarget(rel *shipper.Release, clusters []string) *shipper.TrafficTarget {
	tt := &shipper.TrafficTarget{ObjectMeta: targetMeta(rel)}
	tt.Finalizers = []string{shipper.RolloutFinalizer}
	tt.Spec.Clusters = []shipper.ClusterTrafficTarget{}
	for _, cluster := range clusters {
		tt.Spec.Clusters = append(tt.Spec.Clusters, shipper.ClusterTrafficTarget{Name: cluster, AsFound: true})
	}
	return tt
}

// targetMeta is what the three targets of a Release have in common. The digest of the chart goes with them, so that
// the pinned archive is installed.
func targetMeta(rel *shipper.Release) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{
		Name: rel.Name, Namespace: rel.Namespace, Labels: map[string]string{},
		OwnerReferences: []metav1.OwnerReference{stamp.ReleaseReference(rel)},
	}
	for key, value := range rel.Labels {
		meta.Labels[key] = value
	}
	if digest := rel.Annotations[shipper.ReleaseChartDigestAnnotation]; digest != "" {
		meta.Annotations = map[string]string{shipper.ReleaseChartDigestAnnotation: digest}
	}
	return meta
}

// joined is how clusters are kept in the annotation: sorted, unique, separated by commas.
func joined(clusters []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(clusters))), ",")
}
