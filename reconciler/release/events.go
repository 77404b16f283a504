// SPDX-License-Identifier: Apache-2.0

package release

import (
	"strings"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/release/diary"
)

// Reasons of events.
const (
	chartVerifiedReason     = "ChartVerified"
	clustersSelectedReason  = "ClustersSelected"
	releaseScheduledReason  = "ReleaseScheduled"
	strategyAppliedReason   = "StrategyApplied"
	stateTransitionedReason = "ReleaseStateTransitioned"
	conditionChangedReason  = "ReleaseConditionChanged"
)

func clustersSelected(rel *shipper.Release, clusters []string) report.Event {
	return diary.Normal(clustersSelectedReason, "ChooseClusters", "Set clusters for %q to %v", key(rel), joined(clusters))
}

func chartVerified(rel *shipper.Release, by *shipper.ChartSignature) report.Event {
	return diary.Normal(chartVerifiedReason, "Verify", "The chart of %q is signed by %s %s", key(rel), by.Fingerprint, by.Identity)
}

func targetCreated(kind string, rel *shipper.Release) report.Event {
	return diary.Normal(releaseScheduledReason, "Create "+kind, "Created %s %q", kind, key(rel))
}

func clustersChanged(it *shipper.InstallationTarget) report.Event {
	clusters := strings.Join(it.Spec.Clusters, ",")
	return diary.Normal(releaseScheduledReason, "Use "+clusters, "Updated InstallationTarget %q cluster set to [%s]",
		it.Namespace+"/"+it.Name, clusters)
}

// changes tells what is new in a status. What rel says is what was.
func changes(rel *shipper.Release, is shipper.ReleaseStatus) []report.Event {
	var out []report.Event
	was := rel.Status
	if a := is.AchievedStep; a != nil && (was.AchievedStep == nil || *was.AchievedStep != *a) {
		out = append(out, diary.Normal(strategyAppliedReason, "Achieve "+a.Name, "step [%d] finished", a.Step))
	}
	if is.Strategy != nil {
		before := shipper.ReleaseStrategyState{}
		if was.Strategy != nil {
			before = was.Strategy.State
		}
		out = append(out, transitions(rel, before, is.Strategy.State)...)
	}
	return append(out,
		diary.Changes(conditionChangedReason, shipper.ReleaseBlocked, was.Conditions, is.Conditions)...)
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
	} {
		if state.was != state.is && state.is != "" {
			out = append(out, diary.Normal(stateTransitionedReason, state.name+"="+string(state.is),
				"Release %q had its state %q transitioned to %q", key(rel), state.name, state.is))
		}
	}
	return out
}

func key(rel *shipper.Release) string { return rel.Namespace + "/" + rel.Name }
