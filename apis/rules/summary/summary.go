// SPDX-License-Identifier: Apache-2.0

// Package summary summarises a Release for lists of an Application's Releases: how it ended, how long it took, and which values
// it changed. The reconciler writes the summary into the Release's status for kubectl; shipperctl computes it.
package summary

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// maxChanged, maxReason and maxMessage bound, in characters, the changed values, the reason for an override and the message of the
// condition that is awaited.
const maxChanged, maxReason, maxMessage = 256, 256, 1024

// Of summarises the i-th of an Application's Releases, which are ordered oldest first.
func Of(rels []*shipper.Release, i int) shipper.ReleaseSummary {
	out := shipper.ReleaseSummary{}
	if before := rels[i].Status.Summary; before != nil {
		out.Override, out.OverrideReason, out.Traffic = before.Override, before.OverrideReason, before.Traffic
	}
	if blocks := rels[i].Annotations[shipper.RolloutBlockOverrideAnnotation]; blocks != "" {
		out.Override, out.OverrideReason = blocks, shortened(rels[i].Annotations[shipper.RolloutBlockOverrideReasonAnnotation], maxReason)
	}
	out.Outcome, out.Duration, out.ValuesChanged = outcome(rels, i), duration(rels[i]), Shorten(Changed(rels, i), maxChanged)
	waiting, message := awaited(rels[i])
	out.Waiting, out.Message = waiting, shortened(message, maxMessage)
	return out
}

func shortened(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// awaited is what a Release waits for, and the message about it: the type of a condition, or the reason of Advancing. A Release that is not
// scheduled has no strategy conditions of its own, or outdated ones, so Scheduled comes first. One with fewer clusters than its placement
// wants goes on in those.
func awaited(rel *shipper.Release) (waiting, message string) {
	status := &rel.Status
	if c := shipper.FindCondition(status.Conditions, shipper.ReleaseScheduled); c != nil && c.Status == corev1.ConditionFalse {
		if c.Reason != shipper.PlacementUnfulfilled && c.Reason != shipper.NoWaveForClusters || len(stamp.Clusters(rel)) == 0 {
			return c.Type, c.Message
		}
	}
	if status.Strategy == nil {
		return "", ""
	}
	for _, c := range status.Strategy.Conditions {
		if c.Status == corev1.ConditionFalse {
			return c.Type, c.Message
		}
	}
	return command(rel)
}

// command is what keeps a Release at a step that has what it wants: the reason of Advancing or, where the strategy has no such condition, a
// user who has to raise targetStep.
func command(rel *shipper.Release) (waiting, message string) {
	c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseAdvancing)
	if c != nil && c.Status == corev1.ConditionFalse && c.Reason != shipper.AdvancingComplete {
		return c.Reason, c.Message
	}
	s := rel.Spec.Environment.Strategy
	if rel.Status.Strategy.State.WaitingForCommand != shipper.StrategyStateTrue || s == nil {
		return "", ""
	}
	at := position.Of(rel)
	if to, more := at.Next(s); more && to.Wave > at.Wave {
		return shipper.AdvancingAwaitingCommand, fmt.Sprintf("waits until targetWave is raised to %d (%s), with targetStep 0", to.Wave,
			position.WaveName(s, to.Wave))
	}
	next := rel.Spec.TargetStep + 1
	name := ""
	if int(next) < len(s.Steps) && s.Steps[next].Name != "" {
		name = " (" + s.Steps[next].Name + ")"
	}
	return shipper.AdvancingAwaitingCommand, fmt.Sprintf("waits until targetStep is raised to %d%s", next, name)
}

func outcome(rels []*shipper.Release, i int) shipper.ReleaseOutcome {
	rel, newest := rels[i], i == len(rels)-1
	switch {
	case !strategy.Complete(rel) && newest && shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseFailed):
		return shipper.ReleaseHasFailed
	case !strategy.Complete(rel) && newest:
		return shipper.ReleaseInProgress
	case !strategy.Complete(rel):
		return shipper.ReleaseSuperseded
	case !newest && leaves(rels[i+1], rel):
		return shipper.ReleaseRolledBack
	}
	return shipper.ReleaseCompleted
}

// leaves reports whether next is a rollback to an environment other than rel's.
func leaves(next, rel *shipper.Release) bool {
	return next.Annotations[shipper.ReleaseRollbackOfAnnotation] != "" &&
		!stamp.SameEnvironment(&next.Spec.Environment, &rel.Spec.Environment)
}

// duration is the time from the creation of a Release to its completion; empty before, and when it is unknown because the
// status was lost (the condition Complete then has a message). It keeps an earlier duration, because a restored Release is
// younger than its rollout.
func duration(rel *shipper.Release) string {
	c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseComplete)
	if c == nil || !strategy.Complete(rel) || c.Message != "" {
		return ""
	}
	if known := rel.Status.Summary; known != nil && known.Duration != "" {
		return known.Duration
	}
	took := c.LastTransitionTime.Sub(rel.CreationTimestamp.Time)
	if took < 0 {
		return ""
	}
	return took.Round(time.Second).String()
}

// Changed are the keys of values that differ between the i-th Release and the one before it; none for the first.
func Changed(rels []*shipper.Release, i int) []string {
	if i == 0 {
		return nil
	}
	return stamp.ChangedValues(&rels[i-1].Spec.Environment, &rels[i].Spec.Environment)
}

// Shorten joins keys within a number of characters, and adds how many it left out.
func Shorten(keys []string, most int) string {
	for n := min(len(keys), most); n > 0; n-- {
		text := strings.Join(keys[:n], ", ")
		if n < len(keys) {
			text += fmt.Sprintf(", … %d more", len(keys)-n)
		}
		if utf8.RuneCountInString(text) <= most {
			return text
		}
	}
	if len(keys) == 0 {
		return ""
	}
	return fmt.Sprintf("%d values", len(keys))
}
