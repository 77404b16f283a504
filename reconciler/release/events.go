// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// Reasons of events.
const (
	clustersSelectedReason  = "ClustersSelected"
	releaseScheduledReason  = "ReleaseScheduled"
	strategyAppliedReason   = "StrategyApplied"
	stateTransitionedReason = "ReleaseStateTransitioned"
	conditionChangedReason  = "ReleaseConditionChanged"
	blockedReason           = "RolloutBlocked"
	overriddenReason        = "RolloutBlockOverridden"
)

func normal(reason, action, format string, args ...any) report.Event {
	return report.Event{Type: corev1.EventTypeNormal, Reason: reason, Action: action, Note: fmt.Sprintf(format, args...)}
}

func clustersSelected(rel *shipper.Release, clusters []string) report.Event {
	return normal(clustersSelectedReason, "Schedule", "Set clusters for %q to %v", key(rel), joined(clusters))
}

func targetCreated(kind string, rel *shipper.Release) report.Event {
	return normal(releaseScheduledReason, "Schedule", "Created %s %q", kind, key(rel))
}

func clustersChanged(it *shipper.InstallationTarget) report.Event {
	return normal(releaseScheduledReason, "Schedule", "Updated InstallationTarget %q cluster set to [%s]",
		it.Namespace+"/"+it.Name, strings.Join(it.Spec.Clusters, ","))
}

func blockOverridden(names string) report.Event {
	return normal(overriddenReason, "Override", "%s", names)
}

// changes tells what is new in a status. What rel says is what was.
func changes(rel *shipper.Release, is shipper.ReleaseStatus) []report.Event {
	var out []report.Event
	was := rel.Status
	now := shipper.FindCondition(is.Conditions, shipper.ReleaseBlocked)
	if now != nil && now.Status == corev1.ConditionTrue && !shipper.ConditionTrue(was.Conditions, shipper.ReleaseBlocked) {
		out = append(out, report.Event{
			Type: corev1.EventTypeWarning, Reason: blockedReason, Action: "Block", Note: now.Message,
		})
	}
	if a := is.AchievedStep; a != nil && (was.AchievedStep == nil || *was.AchievedStep != *a) {
		out = append(out, normal(strategyAppliedReason, "ExecuteStrategy", "step [%d] finished", a.Step))
	}
	if is.Strategy != nil {
		before := shipper.ReleaseStrategyState{}
		if was.Strategy != nil {
			before = was.Strategy.State
		}
		out = append(out, transitions(rel, before, is.Strategy.State)...)
	}
	if change := report.Changes(was.Conditions, is.Conditions); change != "" {
		out = append(out, normal(conditionChangedReason, "UpdateStatus", "%s", change))
	}
	return out
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
	} {
		if state.was != state.is {
			out = append(out, normal(stateTransitionedReason, "UpdateStatus",
				"Release %q had its state %q transitioned to %q", key(rel), state.name, state.is))
		}
	}
	return out
}

func key(rel *shipper.Release) string { return rel.Namespace + "/" + rel.Name }
