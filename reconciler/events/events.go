// SPDX-License-Identifier: Apache-2.0

// Package events words the events of Applications and Releases.
//
// Changes of one moment are one event. Each condition that reports a problem gets its own.
package events

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// Reasons of events that Applications and Releases share.
const (
	// Blocked reports that RolloutBlocks came into effect.
	Blocked = "RolloutBlocked"
	// Overridden reports that something was done in spite of RolloutBlocks.
	Overridden = "RolloutBlockOverridden"
)

// Normal is an event of the expected kind.
func Normal(reason, action, format string, args ...any) report.Event {
	return report.Event{
		Type: corev1.EventTypeNormal, Reason: reason, Action: action,
		Note: fmt.Sprintf(format, args...),
	}
}

// Warning is an event of the kind that a user should look at.
func Warning(reason, action, format string, args ...any) report.Event {
	return report.Event{
		Type: corev1.EventTypeWarning, Reason: reason, Action: action,
		Note: fmt.Sprintf(format, args...),
	}
}

// Override reports which blocks were overridden.
func Override(names string) report.Event { return Normal(Overridden, "Override "+names, "%s", names) }

// Changes returns an event of reason for the conditions that changed, and a Warning for each that failed and for the type blocked when it
// became True. Objects with nothing pending get no event when a block ends, and none when it starts if another object reports it.
func Changes(reason, blocked string, concerned BlockEffect, before, after []shipper.Condition) []report.Event {
	var out []report.Event
	is, held := shipper.FindCondition(after, blocked), shipper.ConditionTrue(before, blocked)
	switch {
	case is == nil || held == (is.Status == corev1.ConditionTrue):
	case held && concerned != Held:
		before, after = Without(before, blocked), Without(after, blocked)
	case !held:
		if concerned != ReportedElsewhere {
			out = append(out, report.Event{Type: corev1.EventTypeWarning, Reason: Blocked, Action: "Hold: " + is.Message, Note: is.Message})
		}
		before, after = Without(before, blocked), Without(after, blocked)
	}
	for _, c := range after {
		if was := shipper.FindCondition(before, c.Type); report.Fails(was, c) {
			out = append(out, report.Event{Type: corev1.EventTypeWarning, Reason: c.Reason, Action: "Set " + c.Type + "=False", Note: c.Message})
			before, after = Without(before, c.Type), Without(after, c.Type)
		}
	}
	if note := report.Changes(before, after); note != "" {
		out = append(out, Normal(reason, "Set "+strings.Join(changed(before, after), " "), "%s", note))
	}
	return out
}

// BlockEffect is how much a block concerns an object.
type BlockEffect int

// How much a block concerns an object.
const (
	// Unaffected: nothing is to be done, and that is all that can be said of a block.
	Unaffected BlockEffect = iota
	// ReportedElsewhere is Unaffected; another object's events report the blocks.
	ReportedElsewhere
	// Held: something is to be done and is held, or goes on again.
	Held
)

// Without are the conditions but those of a type.
func Without(conditions []shipper.Condition, conditionType string) []shipper.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c shipper.Condition) bool { return c.Type == conditionType })
}

// WithoutUnderWay are conditions but those of a type, unless they say of that type that something is wrong, or no more so.
func WithoutUnderWay(before, after []shipper.Condition, conditionType string) (was, is []shipper.Condition) {
	if report.Wrong(shipper.FindCondition(before, conditionType)) || report.Wrong(shipper.FindCondition(after, conditionType)) {
		return before, after
	}
	return Without(before, conditionType), Without(after, conditionType)
}

// AnyWrong reports whether there is news of something that is wrong.
func AnyWrong(before, after []shipper.Condition) bool {
	return slices.ContainsFunc(after, func(c shipper.Condition) bool {
		was := shipper.FindCondition(before, c.Type)
		return report.Changed(was, c) && (report.Wrong(&c) || report.Wrong(was))
	})
}

// changed lists the conditions that differ, as they are now.
func changed(before, after []shipper.Condition) []string {
	var out []string
	for _, c := range after {
		if report.Changed(shipper.FindCondition(before, c.Type), c) {
			out = append(out, c.Type+"="+string(c.Status))
		}
	}
	return out
}
