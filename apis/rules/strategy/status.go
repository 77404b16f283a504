// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/check"
	"shipper.dev/shipper/apis/rules/position"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// contenderStatus is the contender's new status. It is not complete while clusters lag.
func (r *rollout) contenderStatus(now metav1.Time, lagging string) shipper.ReleaseStatus {
	rel := r.contender().Release
	status := *rel.Status.DeepCopy()
	if r.stages != nil {
		status.Strategy = r.strategyStatus(rel, now)
		if awaited, _ := r.awaited(); awaited == nil {
			status.AchievedStep = &shipper.AchievedStep{Step: rel.Spec.TargetStep, Name: r.step.Name, Wave: position.Of(rel).Wave}
		}
	}
	status.Conditions = shipper.SetCondition(status.Conditions, r.executed(rel), now)
	status.Conditions = shipper.SetCondition(status.Conditions, r.completed(rel, status.AchievedStep, lagging), now)
	return status
}

// strategyStatus has the conditions that are met and the one that is awaited; its state says which kind that is.
func (r *rollout) strategyStatus(rel *shipper.Release, now metav1.Time) *shipper.ReleaseStrategyStatus {
	out := &shipper.ReleaseStrategyStatus{State: quiet()}
	if len(r.step.ReadinessGates) > 0 {
		out.State.WaitingForReadiness = shipper.StrategyStateFalse
	}
	if r.step.RequiredApprovals() > 0 {
		out.State.WaitingForApproval = shipper.StrategyStateFalse
	}
	if len(check.Of(rel)) > 0 {
		out.State.WaitingForChecks = shipper.StrategyStateFalse
	}
	if rel.Spec.Environment.Strategy.WaitAt(position.Of(rel).Wave, rel.Spec.TargetStep) != "" {
		out.State.WaitingForTime = shipper.StrategyStateFalse
	}
	r.before.state(&out.State)
	var before []shipper.ReleaseStrategyCondition
	if rel.Status.Strategy != nil {
		before = rel.Status.Strategy.Conditions
	}
	awaited, unmet := r.awaited()
	for _, stage := range r.stages[:unmet] {
		c := shipper.ReleaseStrategyCondition{Step: rel.Spec.TargetStep}
		c.Type, c.Status = stage.condition, corev1.ConditionTrue
		out.Conditions = shipper.SetStrategyCondition(out.Conditions, c, since(before, c, now))
	}
	if awaited != nil {
		c := shipper.ReleaseStrategyCondition{Step: rel.Spec.TargetStep}
		c.Type, c.Status = awaited.condition, corev1.ConditionFalse
		c.Reason, c.Message = cmp.Or(awaited.reason, shipper.ClustersNotReady), awaited.message
		out.Conditions = shipper.SetStrategyCondition(out.Conditions, c, since(before, c, now))
		*awaited.waiting(&out.State) = shipper.StrategyStateTrue
		return out
	}
	if _, more := position.Of(rel).Next(rel.Spec.Environment.Strategy); more {
		out.State.WaitingForCommand = shipper.StrategyStateTrue
	}
	return out
}

// since is the time at which a condition got its status.
func since(before []shipper.ReleaseStrategyCondition, c shipper.ReleaseStrategyCondition, now metav1.Time) metav1.Time {
	for _, b := range before {
		if b.Type == c.Type && b.Status == c.Status {
			return b.LastTransitionTime
		}
	}
	return now
}

// executed is the condition StrategyExecuted of the contender.
func (r *rollout) executed(rel *shipper.Release) shipper.Condition {
	c := shipper.Condition{
		Type: shipper.ReleaseStrategyExecuted, Status: corev1.ConditionFalse, Reason: shipper.StrategyInProgress,
	}
	step := fmt.Sprintf("step %d", rel.Spec.TargetStep)
	if r.step != nil && r.step.Name != "" {
		step = fmt.Sprintf("step %d (%s)", rel.Spec.TargetStep, r.step.Name)
	}
	switch {
	case position.HasWaves(rel) && len(steps(rel)) == 0:
		step = position.Of(rel).In(rel.Spec.Environment.Strategy)
	case position.HasWaves(rel):
		step += " of wave " + position.WaveName(rel.Spec.Environment.Strategy, position.Of(rel).Wave)
	}
	awaited, _ := r.awaited()
	switch {
	case r.fault != "":
		c.Reason, c.Message = shipper.StrategyExecutionFailed, r.fault
	case r.inconsistent != "":
		c.Reason, c.Message = shipper.StrategyExecutionFailed, r.inconsistent
	case r.stages == nil:
		c.Message = step + " waits for clusters to be chosen and targets to be created"
	case awaited != nil && r.held:
		c.Message = fmt.Sprintf("%s waits: %s", step, r.Blocked)
	case awaited != nil:
		c.Message = fmt.Sprintf("%s waits: %s", step, awaited.message)
	default:
		c.Status, c.Reason = corev1.ConditionTrue, ""
	}
	return c
}

// completed is the condition Complete: the last step was achieved and is still the one wanted, and no cluster lacks it.
func (r *rollout) completed(rel *shipper.Release, achieved *shipper.AchievedStep, lagging string) shipper.Condition {
	c := shipper.Condition{Type: shipper.ReleaseComplete, Status: corev1.ConditionTrue}
	final := int32(len(steps(rel)) - 1)
	at, lastWave := position.Of(rel), rel.Spec.Environment.Strategy.LastWave()
	switch {
	case at.Wave != lastWave:
		c.Message = fmt.Sprintf("targetWave is %d, the last wave is %d", at.Wave, lastWave)
	case rel.Spec.TargetStep != final:
		c.Message = fmt.Sprintf("targetStep is %d, the last step is %d", rel.Spec.TargetStep, final)
	case achieved == nil || achieved.Step != final || achieved.Wave != lastWave:
		c.Message = fmt.Sprintf("step %d, the last, is not achieved yet", final)
	case lagging != "":
		c.Message = lagging
	default:
		return c
	}
	c.Status, c.Reason = corev1.ConditionFalse, notComplete(rel)
	return c
}

// notComplete is the reason of the condition Complete of a Release that is not complete. It records that the Release was.
func notComplete(rel *shipper.Release) string {
	if wasComplete(rel) {
		return shipper.NoLongerComplete
	}
	return shipper.StrategyNotComplete
}

// bystanderStatus is the status of a Release whose own strategy is not executed: it waits for nothing, and the conditions that
// it had not met by then are dropped.
func (r *rollout) bystanderStatus(rel *shipper.Release, role Role, now metav1.Time) shipper.ReleaseStatus {
	status := *rel.Status.DeepCopy()
	status.Waves = nil
	if status.Strategy != nil {
		met := make([]shipper.ReleaseStrategyCondition, 0, len(status.Strategy.Conditions))
		for _, c := range status.Strategy.Conditions {
			if c.Status == corev1.ConditionTrue {
				met = append(met, c)
			}
		}
		status.Strategy = &shipper.ReleaseStrategyStatus{State: quiet(), Conditions: met}
	}
	if assumedComplete(rel) {
		status.Conditions = shipper.SetCondition(status.Conditions, shipper.Condition{
			Type: shipper.ReleaseComplete, Status: corev1.ConditionTrue,
			Message: "its status was lost; it is taken for complete because targetStep is the last step",
		}, now)
	}
	executed := shipper.Condition{Type: shipper.ReleaseStrategyExecuted, Status: corev1.ConditionTrue}
	switch {
	case role != Superseded && !last(rel):
		executed.Status, executed.Reason = corev1.ConditionFalse, shipper.StrategyExecutionFailed
		executed.Message = inconsistent(rel)
	case role == Superseded:
		executed.Status, executed.Reason = corev1.ConditionFalse, shipper.StrategyInProgress
		executed.Message = fmt.Sprintf("superseded by Release %q", r.contender().Release.Name)
		if why := r.uncovered[rel.Name]; why != "" {
			executed.Message += ": " + why
		}
	}
	status.Conditions = shipper.SetCondition(status.Conditions, executed, now)
	return status
}

// inconsistent is the message of a complete Release, not the newest, whose targetStep is not its last step. It serves on.
func inconsistent(rel *shipper.Release) string {
	return fmt.Sprintf("failed to execute strategy: %q", fmt.Sprintf(
		"Release %s/%s target step is inconsistent: unexpected value %d (expected: %d)",
		rel.Namespace, rel.Name, rel.Spec.TargetStep, len(steps(rel))-1))
}

// quiet is the state of a rollout that waits for nothing.
func quiet() shipper.ReleaseStrategyState {
	return shipper.ReleaseStrategyState{
		WaitingForInstallation: shipper.StrategyStateFalse,
		WaitingForCapacity:     shipper.StrategyStateFalse,
		WaitingForTraffic:      shipper.StrategyStateFalse,
		WaitingForCommand:      shipper.StrategyStateFalse,
	}
}
