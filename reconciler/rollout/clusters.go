// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/placement"
	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// clustersPlan says which clusters Releases get and lose. The annotation release.clusters is all that is stored of it.
type clustersPlan struct {
	// choice are the first clusters of the newest Release; nil when it has some, or none can be chosen.
	choice []string
	// refusal is why no clusters can be chosen; nil when they can.
	refusal error
	// changes are the new clusters of Releases that have some, the newest Release first. None of them is empty.
	changes []clustersChange
	// decision of the newest Release's placement; nil without a placement, and when no cluster matters to it.
	decision *placement.Decision
	// gone are clusters that changes take away because there is no Cluster of that name, as the cache has it.
	gone []string
	// assigned has, by the index of a live Release with waves, the wave of each of its new clusters, or of those that had none.
	assigned map[int]waves.Assigned
	// held is true when a RolloutBlock keeps the decision from being carried out.
	held bool
}

// clustersChange gives a live Release other clusters.
type clustersChange struct {
	// index of the Release among the live ones.
	index    int
	clusters []string
}

// writes reports whether an annotation is to be written.
func (p clustersPlan) writes() bool { return p.choice != nil || len(p.changes) > 0 }

// planClusters is pure. There must be a live Release. Clusters are added first; those that leave go when the step is achieved in all
// others. Nothing can be changed in clusters that are gone, so these go at once. A cluster that joins waits while the newest Release
// replaces another: one that is not ready would hold, and fail, the rollout in all others.
func planClusters(s *scope, rollout strategy.Plan, blocked bool, now metav1.Time) clustersPlan {
	newest := s.history.Newest()
	if len(stamp.Clusters(newest)) == 0 {
		return chooseFirst(s, blocked, now)
	}
	if s.clusters == nil {
		return clustersPlan{}
	}
	p, fleet := clustersPlan{}, s.fleet()
	last, stuck := len(s.history.Live)-1, false
	ends := make([][]string, len(s.history.Live)) // the clusters that each Release has in the end
	for i, r := range slices.Backward(s.history.Live) {
		has, left := stamp.Clusters(r.Release), fleet.leaving(r.Release)
		p.gone = union(p.gone, left.gone)
		if i < last && (rollout.Outcomes[i].Role != strategy.Incumbent || strategy.Complete(newest) || !left.any()) {
			ends[i] = ending(has, left, ends[last])
			continue
		}
		wanted, decision := s.wanted(r.Release, left, now)
		if i == last {
			p.decision = decision
		}
		if i == last && !strategy.Complete(newest) && replaces(rollout) && !left.any() && len(wanted) > 0 {
			wanted = slices.DeleteFunc(wanted, func(name string) bool { return !slices.Contains(has, name) })
		}
		var next []string
		next, ends[i] = paced(&r.Release.Spec.Environment, without(has, left.gone), wanted)
		if added := without(next, has); len(added) > 0 && s.view(now).OfClusters(r.Release, added).Blocked() {
			ends[i], p.held, stuck = has, true, true
			continue
		}
		switch {
		case len(wanted) == 0: // there is nothing to go on with, so nothing leaves
			stuck = true
		case !slices.Equal(next, has):
			p.changes = append(p.changes, clustersChange{index: i, clusters: next})
		}
	}
	if len(p.changes) == 0 && !stuck {
		p.changes = departures(s.history.Live, ends, rollout.Step)
	}
	p.assignMissing(s)
	if blocked && len(p.changes) > 0 {
		p.changes, p.held = nil, true
	}
	p.assign(s)
	return p
}

// assignMissing gives the newest Release again the clusters that it has, if a wave selects one of them that has none.
func (p *clustersPlan) assignMissing(s *scope) {
	newest := s.history.Newest()
	if len(p.changes) > 0 || !position.HasWaves(newest) {
		return
	}
	has, known := stamp.Clusters(newest), waves.Parse(newest)
	if is := waves.Assign(newest.Spec.Environment.Strategy, has, known, s.clusters); is.String() != known.String() {
		p.changes = append(p.changes, clustersChange{index: len(s.history.Live) - 1, clusters: has})
	}
}

// assign gives the clusters of Releases with waves their waves.
func (p *clustersPlan) assign(s *scope) {
	changes := p.changes
	if p.choice != nil {
		changes = []clustersChange{{index: len(s.history.Live) - 1, clusters: p.choice}}
	}
	for _, c := range changes {
		rel := s.history.Live[c.index].Release
		if !position.HasWaves(rel) {
			continue
		}
		if p.assigned == nil {
			p.assigned = map[int]waves.Assigned{}
		}
		p.assigned[c.index] = waves.Assign(rel.Spec.Environment.Strategy, c.clusters, waves.Parse(rel), s.clusters)
	}
}

// replaces reports whether the newest Release replaces another.
func replaces(rollout strategy.Plan) bool {
	return slices.ContainsFunc(rollout.Outcomes, func(o strategy.Outcome) bool { return o.Role == strategy.Incumbent })
}

// chooseFirst chooses the clusters of a newest Release that has none. A placement keeps those of the Release before.
func chooseFirst(s *scope, blocked bool, now metav1.Time) clustersPlan {
	if blocked {
		return clustersPlan{}
	}
	env := &s.history.Newest().Spec.Environment
	in := s.input(env, now)
	if before := s.placedBefore(); before != nil {
		in.Current, in.Sticky = placement.Stay(before, env)
	}
	decision, err := placement.Select(in)
	if err != nil {
		return clustersPlan{refusal: err}
	}
	p := clustersPlan{choice: decision.Chosen}
	if env.ClusterRequirements.Placement != nil {
		p.decision = &decision
	}
	if len(decision.Chosen) > 0 {
		p.assign(s)
		return p
	}
	p.choice = nil
	p.refusal = &placement.Error{
		Reason:  shipper.NoRegionsSpecified,
		Message: "clusterRequirements.regions want no cluster: every region has replicas 0",
	}
	if p.decision != nil {
		p.refusal = &placement.Error{
			Reason: shipper.PlacementUnfulfilled, Message: cmp.Or(decision.Unfulfilled(), "no cluster fits clusterRequirements.placement"),
		}
	}
	return p
}

// input is the input of a decision, without the clusters that are kept.
func (s *scope) input(env *shipper.ReleaseEnvironment, now metav1.Time) placement.Input {
	return placement.Input{
		App: s.app.Name, Requirements: env.ClusterRequirements, Clusters: s.clusters, UnhealthyAfter: s.unhealthyAfter, Now: now.Time,
	}
}

// placedBefore is the newest live Release before the newest that has clusters; nil when there is none.
func (s *scope) placedBefore() *shipper.Release {
	live := s.history.Live
	for _, r := range slices.Backward(live[:len(live)-1]) {
		if len(stamp.Clusters(r.Release)) > 0 {
			return r.Release
		}
	}
	return nil
}

// wanted are the clusters that a Release is to have when those that leave are gone; none when that cannot be said.
func (s *scope) wanted(rel *shipper.Release, left leaving, now metav1.Time) ([]string, *placement.Decision) {
	env := &rel.Spec.Environment
	in := s.input(env, now)
	if env.ClusterRequirements.Placement == nil {
		return replaced(in, stamp.Clusters(rel), left.going), nil
	}
	in.Current, in.Sticky = placement.Stay(rel, env)
	d := placement.Decide(in)
	return d.Chosen, &d
}

// replaced are the clusters of a Release with regions: those that stay, and for each that leaves the one that Choose prefers in its
// region, unless the region has as many as it wants. None when Choose fails.
func replaced(in placement.Input, current, going []string) []string {
	if len(going) == 0 {
		return current
	}
	chosen, err := placement.Choose(in.App, in.Requirements, in.Clusters)
	if err != nil {
		return nil
	}
	out, regions := without(current, going), map[string]string{}
	for i := range in.Clusters {
		regions[in.Clusters[i].Name] = in.Clusters[i].Spec.Region
	}
	most, room := map[string]int{}, map[string]int{}
	for _, name := range going {
		most[regions[name]]++
	}
	for _, name := range chosen {
		room[regions[name]]++
	}
	for _, name := range out {
		room[regions[name]]--
	}
	for _, name := range chosen {
		if region := regions[name]; !slices.Contains(out, name) && most[region] > 0 && room[region] > 0 {
			most[region], room[region] = most[region]-1, room[region]-1
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// paced are the clusters that a Release has next, and those it keeps when the step is achieved in all of them. Of resources, while
// clusters leave, so many are added as maxSurge lets it have beyond those it wants.
func paced(env *shipper.ReleaseEnvironment, has, wanted []string) (next, end []string) {
	added, leaving := without(wanted, has), without(has, wanted)
	room := max(len(wanted)+strategy.Surge(env, len(wanted))-len(has), 0)
	if env.Resources == nil || len(added) <= room {
		return union(has, wanted), wanted
	}
	next = union(has, added[:room])
	return next, without(next, leaving[:max(len(next)-len(wanted), 0)])
}

// ending are the clusters that a Release keeps that does not serve. One that has no other than those that leave moves to those of the
// newest Release: it would hold the cluster until it is deleted.
func ending(has []string, left leaving, newest []string) []string {
	stay := without(has, slices.Concat(left.going, left.gone))
	switch {
	case len(stay) > 0:
		return stay
	case len(left.going) > 0:
		return newest
	}
	return has
}

// departures take the clusters that leave from all Releases, the newest first, once the step is achieved in all others.
func departures(live []strategy.Release, ends [][]string, step strategy.StepState) []clustersChange {
	var out []clustersChange
	var left []string
	for i, r := range slices.Backward(live) {
		if has := stamp.Clusters(r.Release); !slices.Equal(ends[i], has) {
			out, left = append(out, clustersChange{index: i, clusters: ends[i]}), append(left, without(has, ends[i])...)
		}
	}
	if !step.ConvergedBut(left) {
		return nil
	}
	return out
}

// clustersByName are all clusters there are.
type clustersByName map[string]*shipper.Cluster

func (s *scope) fleet() clustersByName {
	out := make(clustersByName, len(s.clusters))
	for i := range s.clusters {
		out[s.clusters[i].Name] = &s.clusters[i]
	}
	return out
}

// leaving are clusters of one Release that leave, sorted.
type leaving struct {
	// going are being deleted, and everything is removed from them before.
	going []string
	// gone have no Cluster object any more: nothing can be changed there, so nothing is awaited.
	gone []string
}

func (l leaving) any() bool { return len(l.going)+len(l.gone) > 0 }

// leaving are the clusters that leave a Release.
func (f clustersByName) leaving(rel *shipper.Release) leaving {
	var out leaving
	for _, name := range stamp.Clusters(rel) {
		switch c, there := f[name]; {
		case !leaves(rel, c):
		case there:
			out.going = append(out.going, name)
		default:
			out.gone = append(out.gone, name)
		}
	}
	return out
}

// leaves reports whether a cluster leaves a Release that has it; c is nil when there is no such Cluster. It leaves a Release with regions
// only to have everything removed.
func leaves(rel *shipper.Release, c *shipper.Cluster) bool {
	placed := rel.Spec.Environment.ClusterRequirements.Placement != nil
	if c == nil {
		return placed
	}
	return !c.DeletionTimestamp.IsZero() && (placed || c.Spec.OnLeave == shipper.OnLeaveRemove)
}

// searching reports whether another cluster may be added to a Release that has some: by PickAll, or because its placement wants more.
func searching(rel *shipper.Release) bool {
	policy := rel.Spec.Environment.ClusterRequirements.Placement
	if policy == nil {
		return false
	}
	if is := rel.Status.Placement; is == nil || is.Chosen < is.Wanted {
		return true
	}
	has := stamp.Clusters(rel)
	switch policy.Type {
	case shipper.PickN:
		return policy.Count != nil && len(has) < int(*policy.Count)
	case shipper.PickFixed:
		return slices.ContainsFunc(policy.Clusters, func(name string) bool { return !slices.Contains(has, name) })
	}
	return true
}

// union of names, sorted.
func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// without are the names that are not among others.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}
