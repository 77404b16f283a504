// SPDX-License-Identifier: Apache-2.0

package application

import (
	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// Reasons of events.
const (
	conditionChangedReason = "ApplicationConditionChanged"
	blockedReason          = "RolloutBlocked"
	overriddenReason       = "RolloutBlockOverridden"
)

func overridden(names string) report.Event {
	return report.Event{Type: corev1.EventTypeNormal, Reason: overriddenReason, Action: "Override", Note: names}
}

// changes tells what is new in a status.
func changes(was, is shipper.ApplicationStatus) []report.Event {
	var out []report.Event
	blocked := shipper.FindCondition(is.Conditions, shipper.ApplicationBlocked)
	if blocked != nil && blocked.Status == corev1.ConditionTrue &&
		!shipper.ConditionTrue(was.Conditions, shipper.ApplicationBlocked) {
		out = append(out, report.Event{
			Type: corev1.EventTypeWarning, Reason: blockedReason, Action: "Block", Note: blocked.Message,
		})
	}
	if change := report.Changes(was.Conditions, is.Conditions); change != "" {
		out = append(out, report.Event{
			Type: corev1.EventTypeNormal, Reason: conditionChangedReason, Action: "UpdateStatus", Note: change,
		})
	}
	return out
}
