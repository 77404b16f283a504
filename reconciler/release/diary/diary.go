// SPDX-License-Identifier: Apache-2.0

// Package diary words the events of Applications and Releases.
//
// The API keeps of several events with the same object, reason and action only the first note, and counts the rest. What
// is to be told on its own therefore needs an action of its own.
package diary

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// Reasons of events that Applications and Releases share.
const (
	// Blocked tells that RolloutBlocks came into effect.
	Blocked = "RolloutBlocked"
	// Overridden tells that something was done in spite of RolloutBlocks.
	Overridden = "RolloutBlockOverridden"
)

// Normal is an event of the expected kind.
func Normal(reason, action, format string, args ...any) report.Event {
	return report.Event{
		Type: corev1.EventTypeNormal, Reason: reason, Action: action,
		Note: fmt.Sprintf(format, args...),
	}
}

// Override tells which blocks were overridden.
func Override(names string) report.Event { return Normal(Overridden, "Override "+names, "%s", names) }

// Changes tells how conditions changed, as reason, and apart from that when blocked, a type among them, became True.
func Changes(reason, blocked string, before, after []shipper.Condition) []report.Event {
	var out []report.Event
	if is := shipper.FindCondition(after, blocked); is != nil && is.Status == corev1.ConditionTrue &&
		!shipper.ConditionTrue(before, blocked) {
		out = append(out, report.Event{
			Type: corev1.EventTypeWarning, Reason: Blocked, Action: "Hold: " + is.Message,
			Note: is.Message,
		})
	}
	if note := report.Changes(before, after); note != "" {
		out = append(out, Normal(reason, "Set "+strings.Join(changed(before, after), " "), "%s", note))
	}
	return out
}

// changed lists the conditions that differ, as they are now.
func changed(before, after []shipper.Condition) []string {
	var out []string
	for _, c := range after {
		if report.News(shipper.FindCondition(before, c.Type), c) {
			out = append(out, c.Type+"="+string(c.Status))
		}
	}
	return out
}
