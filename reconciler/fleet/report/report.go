// SPDX-License-Identifier: Apache-2.0

// Package report words what the reconcilers of targets tell people: conditions over many clusters, what changed in
// them, and events.
package report

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Limits of what the API takes in a message, and of an event.
const (
	maxNote    = 1024
	maxAction  = 128
	maxMessage = 32 * 1024
)

// Cluster is one cluster of a target and what is known of it.
type Cluster struct {
	Name       string
	Conditions []shipper.Condition
}

// Overall sets Operational and Ready of a target from those of its clusters: True when they are True in every
// cluster, and otherwise False with a message that names the clusters and what is wrong there, `cluster: Reason
// message; …`.
func Overall(conditions []shipper.Condition, clusters []Cluster, now metav1.Time) []shipper.Condition {
	for conditionType, reason := range map[string]string{
		shipper.TargetOperational: shipper.ClustersNotOperational,
		shipper.TargetReady:       shipper.ClustersNotReady,
	} {
		c := shipper.Condition{Type: conditionType, Status: corev1.ConditionTrue}
		if message := wrong(conditionType, clusters); message != "" {
			c.Status, c.Reason, c.Message = corev1.ConditionFalse, reason, message
		}
		conditions = shipper.SetCondition(conditions, c, now)
	}
	return conditions
}

// wrong lists the clusters where a condition is not True.
func wrong(conditionType string, clusters []Cluster) string {
	var out []string
	for _, cluster := range clusters {
		c := shipper.FindCondition(cluster.Conditions, conditionType)
		switch {
		case c == nil:
			out = append(out, cluster.Name+": not known yet")
		case c.Status != corev1.ConditionTrue:
			out = append(out, cluster.Name+": "+words(c.Reason, c.Message))
		}
	}
	sort.Strings(out)
	return Shorten(strings.Join(out, "; "), maxMessage)
}

// Changes words what differs between two lists of conditions, `[old] -> [new], …`, or is empty when nothing does that is worth
// telling: see News.
func Changes(before, after []shipper.Condition) string {
	var out []string
	for _, c := range after {
		if old := shipper.FindCondition(before, c.Type); News(old, c) {
			out = append(out, describe(old)+" -> "+describe(&c))
		}
	}
	for _, c := range before {
		if shipper.FindCondition(after, c.Type) == nil {
			out = append(out, describe(&c)+" -> []")
		}
	}
	return strings.Join(out, ", ")
}

// News tells whether a condition is worth an event after what it was, nil when it was not there. A time that moved is not, and
// neither is how far something in progress is: conditions say that, and a rollout of many Pods would drown what matters.
func News(was *shipper.Condition, is shipper.Condition) bool {
	if turned(was, is) {
		return true
	}
	underWay := is.Reason == shipper.InProgress || is.Reason == shipper.StrategyInProgress || is.Reason == shipper.StrategyNotComplete
	return was.Message != is.Message && !underWay
}

func describe(c *shipper.Condition) string {
	if c == nil {
		return "[]"
	}
	return "[" + words(c.Type, string(c.Status), c.Reason, c.Message) + "]"
}

// words joins what is not empty.
func words(parts ...string) string {
	var out []string
	for _, part := range parts {
		if part != "" {
			out = append(out, part)
		}
	}
	return strings.Join(out, " ")
}

// Event is something to tell about an object.
type Event struct {
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type string
	// Reason in UpperCamel, past tense; Action is what was done.
	Reason, Action string
	// Note is the sentence.
	Note string
}

// Emit records events. Call it once what they tell is persisted. Those with the same type and reason are told together, as far as
// there is room: they are of one moment, and each event is a request. The API keeps of several with the same type, reason and
// action only the first, whatever they say, and counts the rest: those for which there was no room get an action of their own.
func Emit(recorder events.EventRecorder, about runtime.Object, list []Event) {
	alike := map[Event]int{}
	for _, e := range together(list) {
		action, kind := e.Action, Event{Type: e.Type, Reason: e.Reason, Action: e.Action}
		if alike[kind]++; alike[kind] > 1 {
			action = fmt.Sprintf("%s %d", action, alike[kind])
		}
		recorder.Eventf(about, nil, e.Type, e.Reason, Shorten(action, maxAction), "%s", Shorten(e.Note, maxNote))
	}
}

// together joins events of the same type and reason, in the order of the first of each, to notes that can be told in full.
func together(list []Event) []Event {
	var out []Event
	for _, e := range list {
		i := slices.IndexFunc(out, func(o Event) bool {
			return o.Type == e.Type && o.Reason == e.Reason && len(o.Note)+len("; ")+len(e.Note) <= maxNote
		})
		if i < 0 {
			out = append(out, e)
			continue
		}
		out[i].Note += "; " + e.Note
		if out[i].Action != e.Action {
			out[i].Action += ", " + e.Action
		}
	}
	return out
}

// ConditionEvents are the events for changed conditions of a target and of its clusters: reason for the target itself,
// clusterReason for a cluster. The target's conditions sum up those of the clusters: other words alone, when there is no news of
// any cluster, are none of the target.
func ConditionEvents(reason, clusterReason string, before, after []shipper.Condition, was, is []Cluster) []Event {
	var out []Event
	for _, cluster := range is {
		var old []shipper.Condition
		for _, c := range was {
			if c.Name == cluster.Name {
				old = c.Conditions
			}
		}
		if change := Changes(old, cluster.Conditions); change != "" {
			note := fmt.Sprintf("cluster %q: %s", cluster.Name, change)
			out = append(out, Event{corev1.EventTypeNormal, clusterReason, "UpdateStatus", note})
		}
	}
	if change := Changes(before, after); change != "" && (len(out) > 0 || anyTurned(before, after)) {
		out = append(out, Event{corev1.EventTypeNormal, reason, "UpdateStatus", change})
	}
	return out
}

// anyTurned tells whether one of the conditions has, or is new or gone.
func anyTurned(before, after []shipper.Condition) bool {
	return len(before) != len(after) || slices.ContainsFunc(after, func(c shipper.Condition) bool {
		return turned(shipper.FindCondition(before, c.Type), c)
	})
}

// turned tells whether a condition has another status or reason than before, when it was not nil.
func turned(was *shipper.Condition, is shipper.Condition) bool {
	return was == nil || was.Status != is.Status || was.Reason != is.Reason
}

// Shorten cuts a text to at most n bytes, on a rune, and shows that it did.
func Shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	const mark = "…"
	return strings.ToValidUTF8(text[:n-len(mark)], "") + mark
}
