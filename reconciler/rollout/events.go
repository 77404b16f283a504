// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/progress"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/events"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// Reasons of events.
const (
	chartVerifiedReason      = "ChartVerified"
	clustersSelectedReason   = "ClustersSelected"
	releaseScheduledReason   = "ReleaseScheduled"
	strategyAppliedReason    = "StrategyApplied"
	stateTransitionedReason  = "ReleaseStateTransitioned"
	conditionChangedReason   = "ReleaseConditionChanged"
	applicationChangedReason = "ApplicationConditionChanged"
	stepAdvancedReason       = "StepAdvanced"
	wentBackReason           = "WentBack"
	abortedOnFailureReason   = "AbortedOnFailure"
)

// movedByItself is the event of a move that no user asked for.
func movedByItself(rel *shipper.Release, m *progress.Move) report.Event {
	s, from, to := rel.Spec.Environment.Strategy, position.Of(rel), position.Position{Wave: m.ToWave, Step: m.To}
	if from.Before(to) {
		return events.Normal(stepAdvancedReason, "Advance to "+to.In(s), "%q advances by itself from %s to %s", key(rel), from.In(s), to.In(s))
	}
	return events.Warning(wentBackReason, "Retreat to "+to.In(s), "%q retreats by itself from %s to %s: %s",
		key(rel), from.In(s), to.In(s), rel.Status.Progress.Failure.Message)
}

func clustersSelected(rel *shipper.Release, clusters []string) report.Event {
	return events.Normal(clustersSelectedReason, "ChooseClusters", "Set clusters for %q to %v", key(rel), joined(clusters))
}

func chartVerified(rel *shipper.Release, by *shipper.ChartSignature) report.Event {
	return events.Normal(chartVerifiedReason, "Verify", "The chart of %q is signed by %s %s", key(rel), by.Fingerprint, by.Identity)
}

func targetCreated(kind string, rel *shipper.Release) report.Event {
	return events.Normal(releaseScheduledReason, "Create "+kind, "Created %s %q", kind, key(rel))
}

func clustersChanged(it *shipper.InstallationTarget) report.Event {
	clusters := strings.Join(it.Spec.Clusters, ",")
	return events.Normal(releaseScheduledReason, "Use "+clusters, "Updated InstallationTarget %q cluster set to [%s]",
		it.Namespace+"/"+it.Name, clusters)
}

// applicationChanges are the events of what is new in the status of an Application: one if nothing is wrong. It reports blocks for its
// Releases, too: an Application at rest gets one event. That content is read is no news: hundreds of placements may begin at once.
func applicationChanges(was, is shipper.ApplicationStatus) []report.Event {
	effect := events.Unaffected
	if shipper.ConditionTrue(is.Conditions, shipper.ApplicationRollingOut) {
		effect = events.Held
	}
	const selected = shipper.ApplicationResourcesSelected
	before, after := events.Without(was.Conditions, selected), events.Without(is.Conditions, selected)
	all := append(contentChanges(was, is), events.Changes(applicationChangedReason, shipper.ApplicationBlocked, effect, before, after)...)
	if c := shipper.FindCondition(after, shipper.ApplicationReleaseSynced); c != nil && c.Reason == shipper.SelectionPending {
		return slices.DeleteFunc(all, func(e report.Event) bool { return e.Type == corev1.EventTypeNormal || e.Reason == c.Reason })
	}
	return report.AsOne(all)
}

// releaseChanges are the events about the changes from rel's status to is: one event if nothing is wrong.
func releaseChanges(rel *shipper.Release, is shipper.ReleaseStatus) []report.Event {
	var out []report.Event
	was := rel.Status
	if a := is.AchievedStep; a != nil && (was.AchievedStep == nil || *was.AchievedStep != *a) {
		out = append(out, achievedNow(rel, a))
	}
	out = append(append(out, undecidedNow(was, is)...), failedNow(was, is)...)
	before, after := events.Without(was.Conditions, shipper.ReleaseAdvancing), events.Without(is.Conditions, shipper.ReleaseAdvancing)
	if c := shipper.FindCondition(after, shipper.ReleaseFailed); c != nil {
		if c.Status == corev1.ConditionTrue && !shipper.ConditionTrue(before, shipper.ReleaseFailed) {
			out = append(out, events.Warning(c.Reason, "Set Failed=True", "%s", c.Message))
		}
		before, after = events.Without(before, c.Type), events.Without(after, c.Type)
	}
	if stays(rel, is) || rel.Spec.Environment.Resources != nil { // one step, which has begun when its target is created
		before, after = events.WithoutUnderWay(before, after, shipper.ReleaseStrategyExecuted)
	} else {
		out = append(out, transitions(rel, states(was), states(is))...)
	}
	if c := shipper.FindCondition(after, shipper.ReleaseStrategyExecuted); len(out) > 0 && c != nil && (c.Status == corev1.ConditionTrue ||
		awaited(was) && awaited(is) && waits(is.Strategy)) {
		before, after = events.Without(before, c.Type), events.Without(after, c.Type) // the events above say more
	}
	if healthy := shipper.ReleaseHealthy; !ails(before) && !ails(after) {
		before, after = events.Without(before, healthy), events.Without(after, healthy)
	}
	concerned := events.ReportedElsewhere
	if waits(is.Strategy) {
		concerned = events.Held
	}
	conditions := events.Changes(conditionChangedReason, shipper.ReleaseBlocked, concerned, before, after)
	if events.AnyWrong(before, after) {
		return append(report.AsOne(out), conditions...)
	}
	return report.AsOne(append(out, conditions...))
}

// achievedNow is the event of a step that is achieved; of a wave where there are no steps.
func achievedNow(rel *shipper.Release, a *shipper.AchievedStep) report.Event {
	if s := rel.Spec.Environment.Strategy; position.HasWaves(rel) && len(s.Steps) == 0 {
		return events.Normal(strategyAppliedReason, "Achieve wave", "%s finished", position.Position{Wave: a.Wave, Step: a.Step}.In(s))
	}
	return events.Normal(strategyAppliedReason, "Achieve "+a.Name, "step [%d] finished", a.Step)
}

// undecidedNow is the event of checks that have become undecided.
func undecidedNow(was, is shipper.ReleaseStatus) []report.Event {
	const advancing = shipper.ReleaseAdvancing
	before, after := shipper.FindCondition(was.Conditions, advancing), shipper.FindCondition(is.Conditions, advancing)
	if after == nil || after.Reason != shipper.AdvancingCheckUndecided || before != nil && before.Reason == after.Reason {
		return nil
	}
	return []report.Event{events.Warning(after.Reason, "Hold", "%s", after.Message)}
}

// failedNow is the event of clusters that fail within maxFailures.
func failedNow(was, is shipper.ReleaseStatus) []report.Event {
	failed := without(is.FailedClusters, was.FailedClusters)
	if len(failed) == 0 {
		return nil
	}
	return []report.Event{events.Warning(shipper.ProgressDeadlineExceeded, "Fail clusters",
		"%s missed progressDeadline: within maxFailures, the rollout advances without them", waves.Counted(failed))}
}

// stays reports whether a Release has had the step that it is to have: what it waits for then, for a moment or because another Release
// comes, is no step that begins.
func stays(rel *shipper.Release, is shipper.ReleaseStatus) bool {
	was, a := rel.Status.AchievedStep, is.AchievedStep
	return was != nil && a != nil && *was == *a && rel.Spec.TargetStep == a.Step
}

// ails reports whether conditions say that objects are neither well nor on their way there.
func ails(conditions []shipper.Condition) bool {
	c := shipper.FindCondition(conditions, shipper.ReleaseHealthy)
	return c != nil && c.Reason == shipper.ObjectsNotHealthy
}

func states(s shipper.ReleaseStatus) shipper.ReleaseStrategyState {
	if s.Strategy == nil {
		return shipper.ReleaseStrategyState{}
	}
	return s.Strategy.State
}

// waits reports whether a step waits for something.
func waits(s *shipper.ReleaseStrategyStatus) bool {
	if s == nil {
		return false
	}
	states := []shipper.StrategyState{
		s.State.WaitingForInstallation, s.State.WaitingForCapacity, s.State.WaitingForTraffic, s.State.WaitingForReadiness,
		s.State.WaitingForApproval, s.State.WaitingForChecks, s.State.WaitingForTime,
	}
	return slices.Contains(states, shipper.StrategyStateTrue)
}

func transitions(rel *shipper.Release, was, is shipper.ReleaseStrategyState) []report.Event {
	var out []report.Event
	for _, state := range []struct {
		name    string
		was, is shipper.StrategyState
	}{
		{"WaitingForInstallation", was.WaitingForInstallation, is.WaitingForInstallation},
		{"WaitingForCapacity", was.WaitingForCapacity, is.WaitingForCapacity},
		{"WaitingForTraffic", was.WaitingForTraffic, is.WaitingForTraffic},
		{"WaitingForCommand", was.WaitingForCommand, is.WaitingForCommand},
		{"WaitingForReadiness", was.WaitingForReadiness, is.WaitingForReadiness},
		{"WaitingForApproval", was.WaitingForApproval, is.WaitingForApproval},
		{"WaitingForChecks", was.WaitingForChecks, is.WaitingForChecks},
		{"WaitingForTime", was.WaitingForTime, is.WaitingForTime},
	} {
		if state.was != state.is && state.is != "" {
			out = append(out, events.Normal(stateTransitionedReason, state.name+"="+string(state.is),
				"Release %q had its state %q transitioned to %q", key(rel), state.name, state.is))
		}
	}
	return out
}

func key(rel *shipper.Release) string { return rel.Namespace + "/" + rel.Name }
