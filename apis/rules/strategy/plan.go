// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"fmt"
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/position"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Plan is the result of planning.
type Plan struct {
	// Outcomes has one entry for each Release observed, in the same order.
	Outcomes []Outcome
	// Leaving has one entry for each Release observed that is being deleted, in the same order.
	Leaving []Leaving
	// Covered are the names of superseded Releases that are replaced and may be deleted, oldest first.
	Covered []string
	// Step is how far the contender's step is.
	Step StepState
}

// Outcome is the plan for one Release.
type Outcome struct {
	// Role of the Release.
	Role Role
	// Write holds the new specs of its targets.
	Write Write
	// Status is the Release's status with achievedStep, strategy and the conditions Complete and StrategyExecuted updated.
	Status shipper.ReleaseStatus
}

// Write holds new specs of a Release's targets; each is nil when the target does not exist or has that spec already.
type Write struct {
	Installation *shipper.InstallationTargetSpec
	Capacity     *shipper.CapacityTargetSpec
	Traffic      *shipper.TrafficTargetSpec
}

// Empty reports whether there is nothing to write.
func (w Write) Empty() bool { return w.Installation == nil && w.Capacity == nil && w.Traffic == nil }

// Writes reports whether the plan writes any target.
func (p Plan) Writes() bool {
	return slices.ContainsFunc(p.Outcomes, func(o Outcome) bool { return !o.Write.Empty() }) ||
		slices.ContainsFunc(p.Leaving, func(d Leaving) bool { return !d.Write.Empty() })
}

// Make computes the plan. Equal arguments give equal plans; now is used for transition times and for the wait of a wave only.
func Make(observed Observed, now metav1.Time) Plan {
	if len(observed.Releases) == 0 {
		return Plan{Leaving: (&rollout{Observed: observed}).planDeletions(now)}
	}
	if placesResources(observed.contender().Release) {
		return planPlacing(observed, now)
	}
	r := newRollout(observed, now)
	if position.HasWaves(observed.contender().Release) {
		return r.planWaves(now)
	}
	if r.fault == "" && observed.contender().Scheduled() {
		r.decide()
	}
	if r.Blocked != "" {
		r.hold()
	}
	plan := Plan{Outcomes: make([]Outcome, len(observed.Releases)), Covered: r.covered, Leaving: r.planDeletions(now), Step: r.stepState()}
	for i, release := range observed.Releases {
		outcome := Outcome{Role: r.roles[i], Write: r.write(i)}
		if r.roles[i] == Contender {
			outcome.Status = r.contenderStatus(now, "")
		} else {
			outcome.Status = r.bystanderStatus(release.Release, r.roles[i], now)
		}
		plan.Outcomes[i] = outcome
	}
	return plan
}

// rollout is the state while one plan is computed.
type rollout struct {
	Observed
	roles []Role
	// step is the step that the contender's targetStep names; nil when fault is set.
	step *shipper.RolloutStrategyStep
	// fault is the message that says why no step can be executed.
	fault string
	// inconsistent is the message of a contender that serves as its last step says although targetStep is another step.
	inconsistent string
	// participants by index of the Release; a superseded Release has none. Nil before decide.
	participants map[int]*participant
	// stages of the step in the order in which they are achieved. Nil before decide.
	stages []stage
	// converged reports whether all stages but the step's gates are achieved. False before decide.
	converged bool
	// serving reports whether the contender and the incumbent have the quantities that the step wants. False before decide.
	serving bool
	// held is true when RolloutBlocks forbid a write.
	held bool
	// previewClusters are the clusters that have a preview Service; previews is what each Release's TrafficTarget is to say about it, by
	// index and cluster. Nil before decide.
	previewClusters map[string]bool
	previews        map[int]map[string]shipper.PreviewSelection
	// covered are the names of superseded Releases that may go.
	covered []string
	// uncovered are the messages that say what the remaining superseded Releases wait for, by name.
	uncovered map[string]string
	// now is the time by which a wave waits.
	now metav1.Time
	// before are the beforeTasks of the contender's wave. Zero before a plan by waves has judged them.
	before beforeTasks
}

func newRollout(observed Observed, now metav1.Time) *rollout {
	r := &rollout{Observed: observed, roles: observed.roles(), uncovered: map[string]string{}, now: now}
	if rel := observed.contender().Release; observed.Returning && Complete(rel) && !last(rel) && len(steps(rel)) > 0 {
		r.inconsistent = inconsistent(rel)
		r.bringBack(rel)
	}
	rel := r.contender().Release
	r.step = stepAt(rel, rel.Spec.TargetStep)
	switch {
	case len(steps(rel)) == 0:
		r.fault = fmt.Sprintf("failed to execute strategy: %q",
			fmt.Sprintf("the strategy of Release %q has no steps", rel.Namespace+"/"+rel.Name))
	case position.Of(rel).Wave > rel.Spec.Environment.Strategy.LastWave():
		r.fault = fmt.Sprintf("failed to execute strategy: %q",
			fmt.Sprintf("no wave %d in strategy for Release %q", position.Of(rel).Wave, rel.Namespace+"/"+rel.Name))
	case r.step == nil:
		r.fault = fmt.Sprintf("failed to execute strategy: %q",
			fmt.Sprintf("no step %d in strategy for Release %q", rel.Spec.TargetStep, rel.Namespace+"/"+rel.Name))
	}
	return r
}

// bringBack plans as if the contender were to be at its last position.
func (r *rollout) bringBack(rel *shipper.Release) {
	at := *rel
	position.Last(rel.Spec.Environment.Strategy).Set(&at)
	r.Releases = slices.Clone(r.Releases)
	r.Releases[len(r.Releases)-1].Release = &at
}

// decide fills participants, stages, serving and covered.
func (r *rollout) decide() {
	newest := r.contender()
	contender := &participant{
		release:  newest,
		capacity: capacityQuantity(newest, r.step.Capacity.Contender),
		traffic:  trafficQuantity(newest, r.step.Traffic.Contender, r.weights()),
		mayGrow:  installed(newest) || Complete(newest.Release),
		alone:    r.alone(len(r.Releases) - 1),

		achievedCapacity: shipper.StrategyContenderAchievedCapacity,
		achievedTraffic:  shipper.StrategyContenderAchievedTraffic,
	}
	r.participants = map[int]*participant{len(r.Releases) - 1: contender}
	var incumbent *participant
	if i := r.incumbent(); i >= 0 {
		incumbent = &participant{
			release:  r.Releases[i],
			capacity: capacityQuantity(r.Releases[i], r.step.Capacity.Incumbent),
			traffic:  trafficQuantity(r.Releases[i], r.step.Traffic.Incumbent, r.weights()),
			mayGrow:  true,
			alone:    r.alone(i),

			achievedCapacity: shipper.StrategyIncumbentAchievedCapacity,
			achievedTraffic:  shipper.StrategyIncumbentAchievedTraffic,
		}
		r.participants[i] = incumbent
	}
	move(contender, incumbent)
	r.previewClusters = r.previewed()
	r.previews = r.planPreviews()
	for i, s := range r.participants {
		r.mark(i, s)
	}
	r.serving = contender.serves() && incumbent.serves()
	for i, role := range r.roles {
		if role == Retired && r.serving {
			r.participants[i] = r.retire(r.Releases[i])
			r.mark(i, r.participants[i])
		}
	}
	r.stages = stagesOf(contender, incumbent, r.backward(contender, incumbent))
	r.converged = !slices.ContainsFunc(r.stages, func(s stage) bool { return !s.achieved })
	r.stages = append(r.stages, r.gates()...)
	r.cover(contender, incumbent, r.serving)
}

// backward reports whether the rollout retreats: to a step before the achieved one, or to less than it has reached.
func (r *rollout) backward(contender, incumbent *participant) bool {
	if rel := contender.release.Release; position.Of(rel).Before(position.Achieved(rel)) {
		return true
	}
	ahead := len(contender.capacity.above()) > 0 || len(contender.traffic.above()) > 0
	return incumbent != nil &&
		(ahead || len(incumbent.capacity.below()) > 0 || len(incumbent.traffic.below()) > 0)
}

// hold sets held if RolloutBlocks forbid any write.
func (r *rollout) hold() {
	for i := range r.Releases {
		if !r.wish(i).Empty() {
			r.held = true
		}
	}
	r.covered = nil
}

// write is the write for the i-th Release now.
func (r *rollout) write(i int) Write {
	if r.held {
		return Write{}
	}
	return r.wish(i)
}

// wish is the write for the i-th Release if there were no blocks.
func (r *rollout) wish(i int) Write {
	release, newest := r.Releases[i], i == len(r.Releases)-1
	w := Write{Installation: installation(release, newest, r.participants != nil && r.roles[i] != Superseded)}
	s, moved := r.participants[i]
	if !moved {
		s = r.unmoved(release)
		r.mark(i, s)
	}
	if s.capacity.adopts || moved && s.capacity.changed() {
		w.Capacity = capacitySpec(release, s.capacity)
	}
	if s.traffic.adopts || moved && s.traffic.changed() || s.traffic.remarked() {
		w.Traffic = trafficSpec(s.traffic)
	}
	return w
}

// weights is the sum of the step's weights; 100 when no step gives any Release traffic.
func (r *rollout) weights() int64 {
	if r.step != nil {
		if sum := int64(r.step.Traffic.Contender) + int64(r.step.Traffic.Incumbent); sum > 0 {
			return sum
		}
	}
	return 100
}

// installation is the new spec of the InstallationTarget. Only the newest Release may take over shared objects, from its
// creation on: its predecessors release them before it takes them. The set of clusters changes only if follow is set.
func installation(r Release, newest, follow bool) *shipper.InstallationTargetSpec {
	if r.Installation == nil {
		return nil
	}
	have := slices.Sorted(slices.Values(r.Installation.Spec.Clusters))
	want := have
	if follow {
		want = clustersOf(r)
	}
	if slices.Equal(have, want) && r.Installation.Spec.CanOverride == newest {
		return nil
	}
	spec := r.Installation.Spec.DeepCopy()
	spec.CanOverride = newest
	if !slices.Equal(have, want) {
		spec.Clusters = append([]string{}, want...)
	}
	return spec
}

func capacitySpec(r Release, g *quantity) *shipper.CapacityTargetSpec {
	var usual int32
	for _, c := range r.Capacity.Spec.Clusters {
		usual = max(usual, c.TotalReplicaCount)
	}
	spec := &shipper.CapacityTargetSpec{Clusters: []shipper.ClusterCapacityTarget{}}
	for _, name := range g.clusters {
		total, known := g.total[name]
		if !known {
			total = usual
		}
		spec.Clusters = append(spec.Clusters, shipper.ClusterCapacityTarget{
			Name: name, Percent: int32(g.next[name]), TotalReplicaCount: total, AsFound: g.asFound[name],
		})
	}
	return spec
}

func trafficSpec(g *quantity) *shipper.TrafficTargetSpec {
	spec := &shipper.TrafficTargetSpec{Clusters: []shipper.ClusterTrafficTarget{}}
	for _, name := range g.clusters {
		spec.Clusters = append(spec.Clusters, shipper.ClusterTrafficTarget{
			Name: name, Weight: uint32(min(g.next[name], math.MaxInt32)), AsFound: g.asFound[name],
			Sole: g.nextMarks[name].sole, Preview: g.nextMarks[name].preview,
		})
	}
	return spec
}

// installed reports whether a Release's chart is in all its clusters.
func installed(r Release) bool {
	it := r.Installation
	return it != nil && speaks(it) &&
		slices.Equal(slices.Sorted(slices.Values(it.Spec.Clusters)), clustersOf(r)) &&
		shipper.ConditionTrue(it.Status.Conditions, shipper.TargetReady)
}

// installedIn reports whether a Release's chart is in one of its clusters.
func installedIn(r Release, cluster string) bool {
	it := r.Installation
	return it != nil && speaks(it) &&
		slices.ContainsFunc(it.Status.Clusters, func(c shipper.ClusterInstallationStatus) bool {
			return c.Name == cluster && shipper.ConditionTrue(c.Conditions, shipper.TargetReady)
		})
}

// speaks reports whether an InstallationTarget's status is about its spec. The original wrote neither observedGeneration nor a
// cluster's status: its conditions count until this reconciler has written the status of every cluster.
func speaks(it *shipper.InstallationTarget) bool {
	if it.Status.ObservedGeneration >= it.Generation {
		return true
	}
	return it.Status.ObservedGeneration == 0 &&
		slices.ContainsFunc(it.Status.Clusters, func(c shipper.ClusterInstallationStatus) bool { return c.Status == "" })
}
