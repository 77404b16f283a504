// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// DefaultRolling is the bound of both maxUnavailable and maxSurge when they are absent. Source: KubeFleet.
var DefaultRolling = intstr.FromString("25%")

// placing is the state while a plan of Releases with resources is computed. Two of them cannot run side by side in a cluster, for their
// objects have the same names: the InstallationTarget of the newest Release that lists a cluster decides what is there. So the contender
// takes clusters over one after another, and the Release that had one drops it when the contender is ready there.
type placing struct {
	Observed
	roles []Role
	// clusters are those of the contender, sorted.
	clusters []string
	// listed are the clusters in the contender's target now, next those that are to be.
	listed, next []string
	// retired has, by index of an older Release, the clusters in its target that it drops.
	retired map[int][]string
	// byWaves is what waves add; nil without them.
	byWaves *placedWaves
}

// placesResources reports whether a Release has resources instead of a chart.
func placesResources(rel *shipper.Release) bool { return rel.Spec.Environment.Resources != nil }

// planPlacing is Make for an Application with resources.
func planPlacing(observed Observed, now metav1.Time) Plan {
	p := newPlacing(observed)
	if observed.contender().Scheduled() && observed.Blocked == "" && !p.hasNoPosition() {
		p.takeOver()
		p.letGo()
	}
	if p.byWaves != nil {
		p.stageByWaves(now)
	}
	plan := Plan{Leaving: p.planDeletions(now), Step: p.stepState()}
	for i, release := range observed.Releases {
		outcome := Outcome{Role: p.roles[i], Write: Write{Installation: p.write(i)}, Status: p.olderStatus(release.Release, i, now)}
		if p.roles[i] == Contender {
			outcome.Status = p.contenderStatus(now)
		}
		if p.roles[i] == Superseded && observed.Blocked == "" && release.Held == "" && (p.everywhere() || placedNowhere(release)) {
			plan.Covered = append(plan.Covered, release.Release.Name)
		}
		plan.Outcomes = append(plan.Outcomes, outcome)
	}
	return plan
}

func newPlacing(observed Observed) *placing {
	p := &placing{Observed: observed, roles: observed.roles(), retired: map[int][]string{}}
	p.clusters = chosenOf(observed.contender())
	p.listed = lists(observed.contender())
	p.next = p.listed
	p.byWaves = placedWavesOf(p)
	return p
}

// hasNoPosition reports whether the contender names a wave or a step that its strategy does not have.
func (p *placing) hasNoPosition() bool {
	return p.byWaves != nil && !p.byWaves.at.Exists(p.byWaves.strategy)
}

// lists are the clusters in a Release's InstallationTarget, sorted.
func lists(r Release) []string {
	if r.Installation == nil {
		return nil
	}
	return slices.Sorted(slices.Values(r.Installation.Spec.Clusters))
}

// placedNowhere reports whether a Release is known to place nothing.
func placedNowhere(r Release) bool {
	return r.Installation != nil && len(r.Installation.Spec.Clusters) == 0 && len(r.Installation.Status.Clusters) == 0
}

// takeOver adds to the contender's target the clusters that it may change now, and removes those that are not its own any more.
// A cluster without an earlier version, and one that cannot be reached, takes no slot. A Release that completed goes back to all its
// clusters at once.
func (p *placing) takeOver() {
	if p.byWaves != nil {
		p.takeOverByWaves()
		return
	}
	free := Slots(&p.contender().Release.Spec.Environment, len(p.clusters)) - p.usedSlots()
	p.next = nil
	for _, cluster := range p.clusters {
		switch {
		case slices.Contains(p.listed, cluster), p.unpaced(), !p.hasEarlier(cluster), !p.reachable(cluster):
		case free > 0:
			free--
		default:
			continue
		}
		p.next = append(p.next, cluster)
	}
	p.keepLeaving()
}

// keepLeaving keeps clusters that are not the contender's any more until it is ready in all its own.
func (p *placing) keepLeaving() {
	done := p.everywhere() || p.byWaves != nil && p.converged()
	for _, cluster := range p.listed {
		if !slices.Contains(p.clusters, cluster) && !done {
			p.next = append(p.next, cluster)
		}
	}
	slices.Sort(p.next)
}

// unpaced reports whether all clusters may change at the same time.
func (p *placing) unpaced() bool {
	rel := p.contender().Release
	return Complete(rel) || p.Returning || onlyReports(&rel.Spec.Environment)
}

// onlyReports reports whether a Release with resources writes nothing into its clusters.
func onlyReports(env *shipper.ReleaseEnvironment) bool {
	return env.Apply != nil && env.Apply.Type == shipper.ApplyReportDiff
}

// Slots is how many of so many clusters may be without a ready version at the same time; at least 1, and all when nothing is written.
func Slots(env *shipper.ReleaseEnvironment, clusters int) int {
	if onlyReports(env) {
		return max(clusters, 1)
	}
	var bound *intstr.IntOrString
	if rolling := rollingOf(env); rolling != nil {
		bound = rolling.MaxUnavailable
	}
	return max(scaled(bound, clusters), 1)
}

// Surge is how many more clusters than the number given a Release with resources may have while some leave it; at least 1, because a
// replacement is placed before a cluster is emptied.
func Surge(env *shipper.ReleaseEnvironment, clusters int) int {
	var bound *intstr.IntOrString
	if rolling := rollingOf(env); rolling != nil {
		bound = rolling.MaxSurge
	}
	return max(scaled(bound, clusters), 1)
}

func rollingOf(env *shipper.ReleaseEnvironment) *shipper.RollingClusters {
	if env.Strategy == nil {
		return nil
	}
	return env.Strategy.Rolling
}

// scaled is a bound in clusters, rounded up: admission refuses those that are none.
func scaled(bound *intstr.IntOrString, clusters int) int {
	if bound == nil {
		bound = &DefaultRolling
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(bound, clusters, true)
	if err != nil {
		return 0
	}
	return n
}

// usedSlots is how many clusters use a slot: the contender has changed them, it is not ready there, and they can be reached.
func (p *placing) usedSlots() int {
	n := 0
	for _, cluster := range p.listed {
		if !healthyIn(p.contender(), cluster) && p.hasEarlier(cluster) && p.reachable(cluster) {
			n++
		}
	}
	return n
}

// hasEarlier reports whether a Release before the contender was placed on a cluster.
func (p *placing) hasEarlier(cluster string) bool {
	return slices.ContainsFunc(p.Releases[:len(p.Releases)-1], func(r Release) bool {
		return slices.Contains(stamp.Clusters(r.Release), cluster) && (Complete(r.Release) || slices.Contains(lists(r), cluster))
	})
}

// reachable reports whether the newest status about a cluster is recent, or says nothing of that. One that is being connected to, as after
// a restart of the reconciler, has yet to answer: it keeps its slot.
func (p *placing) reachable(cluster string) bool {
	for _, r := range slices.Backward(p.Releases) {
		if r.Installation == nil {
			continue
		}
		for _, c := range r.Installation.Status.Clusters {
			if operational := shipper.FindCondition(c.Conditions, shipper.TargetOperational); c.Name == cluster && operational != nil {
				return operational.Status != corev1.ConditionFalse
			}
		}
	}
	return true
}

// isPlaced reports whether the contender is ready in a cluster.
func (p *placing) isPlaced(cluster string) bool {
	return slices.Contains(p.listed, cluster) && healthyIn(p.contender(), cluster)
}

// converged reports whether the contender is ready in all its clusters; with waves, whether its wave is done.
func (p *placing) converged() bool {
	return len(p.clusters) > 0 && len(p.incomplete()) == 0 && (p.byWaves == nil || p.contender().Scheduled())
}

// everywhere reports whether the contender is ready in all its clusters, and in its last wave.
func (p *placing) everywhere() bool {
	return p.converged() && (p.byWaves == nil || p.byWaves.isLastWave() && int(p.placedClusters()) == len(p.clusters))
}

// incomplete are the clusters that the position waits for, sorted.
func (p *placing) incomplete() []string {
	return slices.DeleteFunc(slices.Clone(p.clusters), func(cluster string) bool {
		if p.byWaves != nil {
			return !p.awaits(cluster)
		}
		return p.isPlaced(cluster)
	})
}

// write is the new spec of the InstallationTarget of the i-th Release; nil when it has that spec already.
func (p *placing) write(i int) *shipper.InstallationTargetSpec {
	release, newest := p.Releases[i], i == len(p.Releases)-1
	if release.Installation == nil || p.Blocked != "" {
		return nil
	}
	have, want := lists(release), []string(nil)
	if newest {
		want = p.next
	} else {
		want = slices.DeleteFunc(slices.Clone(have), func(c string) bool { return slices.Contains(p.retired[i], c) })
		want = p.withReturned(i, want)
	}
	want = p.keepBlocked(have, want)
	if slices.Equal(have, want) && release.Installation.Spec.CanOverride == newest {
		return nil
	}
	spec := release.Installation.Spec.DeepCopy()
	spec.Clusters, spec.CanOverride = append([]string{}, want...), newest
	return spec
}

// contenderStatus is the contender's new status.
func (p *placing) contenderStatus(now metav1.Time) shipper.ReleaseStatus {
	if p.byWaves != nil {
		return p.statusByWaves(now)
	}
	rel := p.contender().Release
	status := *rel.Status.DeepCopy()
	executed := shipper.Condition{
		Type: shipper.ReleaseStrategyExecuted, Status: corev1.ConditionFalse, Reason: shipper.StrategyInProgress, Message: p.awaited(),
	}
	complete := shipper.Condition{
		Type: shipper.ReleaseComplete, Status: corev1.ConditionFalse, Reason: notComplete(rel), Message: p.awaited(),
	}
	installed := shipper.ReleaseStrategyCondition{Condition: shipper.Condition{
		Type: shipper.StrategyContenderAchievedInstallation, Status: corev1.ConditionFalse, Reason: shipper.ClustersNotReady,
		Message: p.awaited(),
	}}
	state := quiet()
	state.WaitingForInstallation = shipper.StrategyStateTrue
	if p.converged() {
		executed.Status, executed.Reason = corev1.ConditionTrue, ""
		complete.Status, complete.Reason = corev1.ConditionTrue, ""
		installed.Status, installed.Reason = corev1.ConditionTrue, ""
		state.WaitingForInstallation = shipper.StrategyStateFalse
		status.AchievedStep = &shipper.AchievedStep{}
	}
	var before []shipper.ReleaseStrategyCondition
	if rel.Status.Strategy != nil {
		before = rel.Status.Strategy.Conditions
	}
	if p.contender().Scheduled() {
		status.Strategy = &shipper.ReleaseStrategyStatus{
			State: state, Conditions: shipper.SetStrategyCondition(nil, installed, since(before, installed, now)),
		}
	}
	status.Conditions = shipper.SetCondition(status.Conditions, executed, now)
	// A Release that completed stays complete when a cluster joins or is lost: others go back to it.
	if complete.Status == corev1.ConditionTrue || !Complete(rel) {
		status.Conditions = shipper.SetCondition(status.Conditions, complete, now)
	}
	return status
}

// awaited says what the contender waits for; empty when it is ready in all its clusters.
func (p *placing) awaited() string {
	var moving, waiting []string
	for _, cluster := range p.clusters {
		switch {
		case !slices.Contains(p.next, cluster):
			waiting = append(waiting, cluster)
		case !slices.Contains(p.listed, cluster) || !healthyIn(p.contender(), cluster):
			moving = append(moving, cluster)
		}
	}
	rel := p.contender().Release
	switch {
	case !p.contender().Scheduled():
		return "waits for clusters to be chosen and its target to be created"
	case p.Blocked != "" && len(moving)+len(waiting) > 0:
		return "waits: " + p.Blocked
	case len(moving) > 0 && len(waiting) > 0:
		return fmt.Sprintf("clusters pending: %s; %s begin when one of them is ready%s. for more details try `kubectl describe it %s`",
			bracketed(moving), bracketed(waiting), p.problemIn(moving), rel.Name)
	case len(moving) > 0:
		return fmt.Sprintf("clusters pending: %s%s. for more details try `kubectl describe it %s`", bracketed(moving), p.problemIn(moving),
			rel.Name)
	case len(waiting) > 0:
		return fmt.Sprintf("clusters pending: %s", bracketed(waiting))
	}
	return ""
}

// problemIn words what is wrong in the first of some clusters in which anything is, beyond that it is in progress; empty if nothing is.
func (p *placing) problemIn(clusters []string) string {
	for _, lack := range p.lacking() {
		if slices.Contains(clusters, lack.Cluster) && lack.Reason != "" && lack.Reason != shipper.InProgress {
			return strings.TrimSuffix(fmt.Sprintf("; %s: %s: %s", lack.Cluster, lack.Reason, lack.Message), ": ")
		}
	}
	return ""
}

// olderStatus is the status of a Release that is not the newest.
func (p *placing) olderStatus(rel *shipper.Release, i int, now metav1.Time) shipper.ReleaseStatus {
	status := *rel.Status.DeepCopy()
	status.Waves = nil
	executed := shipper.Condition{Type: shipper.ReleaseStrategyExecuted, Status: corev1.ConditionTrue}
	if p.roles[i] == Superseded {
		executed.Status, executed.Reason = corev1.ConditionFalse, shipper.StrategyInProgress
		executed.Message = fmt.Sprintf("superseded by Release %q", p.contender().Release.Name)
	}
	status.Conditions = shipper.SetCondition(status.Conditions, executed, now)
	if status.Strategy == nil {
		return status
	}
	// Nothing is awaited for it any more, whatever a cluster lacked when the next Release came.
	status.Strategy.State = quiet()
	if Complete(rel) {
		installed := shipper.ReleaseStrategyCondition{Condition: shipper.Condition{
			Type: shipper.StrategyContenderAchievedInstallation, Status: corev1.ConditionTrue,
		}}
		status.Strategy.Conditions = shipper.SetStrategyCondition(nil, installed, since(status.Strategy.Conditions, installed, now))
	}
	return status
}

// PlacesNothing reports whether a Release with resources is known to have none in any cluster.
func PlacesNothing(r Release) bool { return placesResources(r.Release) && placedNowhere(r) }

// stepState is how far the contender is.
func (p *placing) stepState() StepState {
	if p.byWaves != nil {
		return p.stepStateByWaves()
	}
	s := StepState{
		Converged: p.converged(), Achieved: p.converged(), Incumbent: slices.Contains(p.roles, Incumbent), Awaited: p.awaited(),
		Begun: p.contender().Scheduled(),
	}
	if s.Begun {
		s.Incomplete = p.incomplete()
	}
	lacking := p.lacking()
	for _, lack := range lacking {
		if slices.Contains(p.next, lack.Cluster) {
			s.Lacking = append(s.Lacking, lack)
		}
	}
	s.Available = int32(len(p.clusters) - len(lacking))
	return s
}
