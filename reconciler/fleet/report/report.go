// SPDX-License-Identifier: Apache-2.0

// Package report writes the texts of the reconcilers of targets: conditions over many clusters, what changed in
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
	// maxOfCluster is the most that the message over all clusters repeats of one: kubectl shows it between other columns, which a longer text
	// tears apart. The cluster's own condition has all of it.
	maxOfCluster = 300
)

// Cluster is one cluster of a target and what is known of it.
type Cluster struct {
	Name       string
	Conditions []shipper.Condition
}

// Overall sets Operational and Ready of a target from those of its clusters: True when they are True in every
// cluster, and otherwise False with a message that names the clusters and what is wrong there, `cluster: Reason
// message; …`. Where nothing is wrong but conflicts with other writers, it is Unknown.
func Overall(conditions []shipper.Condition, clusters []Cluster, now metav1.Time) []shipper.Condition {
	for conditionType, reason := range map[string]string{
		shipper.TargetOperational: shipper.ClustersNotOperational,
		shipper.TargetReady:       shipper.ClustersNotReady,
	} {
		c := shipper.Condition{Type: conditionType, Status: corev1.ConditionTrue}
		if message := wrong(conditionType, clusters); message != "" {
			c.Status, c.Reason, c.Message = corev1.ConditionFalse, reason, message
			if !slices.ContainsFunc(clusters, func(one Cluster) bool { return decided(conditionType, one) }) {
				c.Status = corev1.ConditionUnknown
			}
		}
		conditions = shipper.SetCondition(conditions, c, now)
	}
	return conditions
}

// decided reports whether a condition of a cluster is not True, and not because of conflicts.
func decided(conditionType string, cluster Cluster) bool {
	c := shipper.FindCondition(cluster.Conditions, conditionType)
	return c == nil || c.Status != corev1.ConditionTrue && (c.Status != corev1.ConditionUnknown || c.Reason != shipper.InProgress)
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
			out = append(out, cluster.Name+": "+clauses(words(c.Reason, c.Message), maxOfCluster))
		}
	}
	sort.Strings(out)
	return Shorten(strings.Join(out, "; "), maxMessage)
}

// Changes words what differs between two lists of conditions, `[old] -> [new], …`, or is empty when nothing does that is worth
// an event: see Changed.
func Changes(before, after []shipper.Condition) string {
	return changes(before, after, Changed)
}

// changes describes the changed conditions.
func changes(before, after []shipper.Condition, told func(was *shipper.Condition, is shipper.Condition) bool) string {
	var out []string
	for _, c := range after {
		if old := shipper.FindCondition(before, c.Type); told(old, c) {
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

// Changed reports whether a condition is worth an event after what it was, nil when it was not there. A time that moved is not, and
// neither is how far something in progress is: conditions say that, and a rollout of many Pods would drown what matters.
func Changed(was *shipper.Condition, is shipper.Condition) bool {
	if turned(was, is) {
		return true
	}
	return was.Message != is.Message && !underWay(is.Reason)
}

// underWay reports whether a reason says that what was asked for is being done.
func underWay(reason string) bool {
	switch reason {
	case shipper.InProgress, shipper.PodsNotInEndpoints, shipper.StrategyInProgress, shipper.StrategyNotComplete, shipper.NoLongerComplete:
		return true
	}
	return false
}

// Wrong reports whether a condition says that something is: neither that all is well, nor that it is under way. A condition that is
// False when all is well has no reason.
func Wrong(c *shipper.Condition) bool {
	return c != nil && c.Status != corev1.ConditionTrue && c.Reason != "" && !underWay(c.Reason)
}

// ofTarget is News of a condition of a target, or of one of its clusters. That it gets what it was asked for, and has it, its Release
// says when the step is achieved: a target reports problems and the end of problems. There is no Deployment of any
// target before the Release is installed: that is not reported, nor is its end. before are all conditions beside was.
func ofTarget(before []shipper.Condition) func(was *shipper.Condition, is shipper.Condition) bool {
	return func(was *shipper.Condition, is shipper.Condition) bool {
		begins := was == nil && is.Reason == shipper.MissingDeployment
		begun := was != nil && was.Reason == shipper.MissingDeployment && sinceKnown(before, was)
		return Changed(was, is) && (Wrong(&is) && !begins || Wrong(was) && !begun)
	}
}

// sinceKnown reports whether a condition has not turned since the cluster can be worked with.
func sinceKnown(conditions []shipper.Condition, c *shipper.Condition) bool {
	operational := shipper.FindCondition(conditions, shipper.TargetOperational)
	return operational == nil || !c.LastTransitionTime.After(operational.LastTransitionTime.Time)
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

// Event is an event about an object.
type Event struct {
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type string
	// Reason in UpperCamel, past tense; Action is what was done.
	Reason, Action string
	// Note is the sentence.
	Note string
}

// Emit records events. Call it after their facts are persisted. Events with the same type and reason are joined, as far as
// there is room: they are of one moment, and each event is a request.
func Emit(recorder events.EventRecorder, about runtime.Object, list []Event) {
	for _, e := range together(list) {
		recorder.Eventf(about, nil, e.Type, e.Reason, Shorten(e.Action, maxAction), "%s", Shorten(e.Note, maxNote))
	}
}

// together joins events of the same type and reason, in the order of the first of each, to notes within the limit.
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

// AsOne makes one event of those that are Normal, as far as there is room: that of the first, which is to be what matters most.
// Warnings stay what they are.
func AsOne(list []Event) []Event {
	var out []Event
	first := -1
	for _, e := range list {
		switch {
		case e.Type != corev1.EventTypeNormal || first >= 0 && len(out[first].Note)+len("; ")+len(e.Note) > maxNote:
			out = append(out, e)
		case first < 0:
			first = len(out)
			out = append(out, e)
		default:
			out[first].Note += "; " + e.Note
			out[first].Action += ", " + e.Action
		}
	}
	return out
}

// ConditionEvents are the events for what is wrong with a target and with its clusters, and no longer so: reason for the target
// itself, clusterReason for a cluster. The target's conditions sum up those of the clusters: when there is no news of any cluster,
// there is none of the target but what is wrong with itself.
func ConditionEvents(reason, clusterReason string, before, after []shipper.Condition, was, is []Cluster) []Event {
	var out []Event
	for _, cluster := range is {
		var old []shipper.Condition
		for _, c := range was {
			if c.Name == cluster.Name {
				old = c.Conditions
			}
		}
		failed, rest := failures(old, cluster.Conditions, ofTarget(old), fmt.Sprintf("cluster %q: ", cluster.Name))
		out = append(out, failed...)
		if change := changes(without(old, rest, cluster.Conditions), rest, ofTarget(old)); change != "" {
			note := fmt.Sprintf("cluster %q: %s", cluster.Name, change)
			out = append(out, Event{corev1.EventTypeNormal, clusterReason, "UpdateStatus", note})
		}
	}
	told := Changed
	if len(out) == 0 {
		told = ofItself
	}
	failed, rest := failures(before, after, ofItself, "")
	out = append(out, failed...)
	if change := changes(without(before, rest, after), rest, told); change != "" {
		out = append(out, Event{corev1.EventTypeNormal, reason, "UpdateStatus", change})
	}
	return out
}

// failures returns a Warning for each condition that newly failed: its message after a prefix, under its reason. rest are the
// conditions without such a Warning.
func failures(
	before, after []shipper.Condition, told func(was *shipper.Condition, is shipper.Condition) bool, begins string,
) (out []Event, rest []shipper.Condition) {
	for _, c := range after {
		was := shipper.FindCondition(before, c.Type)
		if !Fails(was, c) || !told(was, c) {
			rest = append(rest, c)
			continue
		}
		out = append(out, Event{corev1.EventTypeWarning, c.Reason, "Set " + c.Type + "=False", begins + c.Message})
	}
	return out, rest
}

// without are the conditions of old but for those of all that are not in rest.
func without(old, rest, all []shipper.Condition) []shipper.Condition {
	return slices.DeleteFunc(slices.Clone(old), func(c shipper.Condition) bool {
		return shipper.FindCondition(rest, c.Type) == nil && shipper.FindCondition(all, c.Type) != nil
	})
}

// Fails reports whether a condition turned to failed, or failed for a new reason, and has a message.
func Fails(was *shipper.Condition, is shipper.Condition) bool {
	return is.Status == corev1.ConditionFalse && is.Message != "" && Wrong(&is) && Changed(was, is)
}

// ofItself is ofTarget of a condition that sums up no clusters.
func ofItself(was *shipper.Condition, is shipper.Condition) bool {
	return Changed(was, is) && (Wrong(own(&is)) || Wrong(own(was)))
}

// own is a condition that sums up no clusters; nil when it does.
func own(c *shipper.Condition) *shipper.Condition {
	if c == nil || c.Reason == shipper.ClustersNotReady || c.Reason == shipper.ClustersNotOperational {
		return nil
	}
	return c
}

// turned reports whether a condition has another status or reason than before, when it was not nil.
func turned(was *shipper.Condition, is shipper.Condition) bool {
	return was == nil || was.Status != is.Status || was.Reason != is.Reason
}

// clauses cuts a text to about n bytes, where a clause ends if one does: half a command would be a false one.
func clauses(text string, n int) string {
	if len(text) <= n {
		return text
	}
	if end := strings.LastIndex(text[:n], "; "); end > 0 {
		return text[:end] + "; …"
	}
	return Shorten(text, n)
}

// Shorten cuts a text to at most n bytes, on a rune, and shows that it did.
func Shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	const mark = "…"
	return strings.ToValidUTF8(text[:n-len(mark)], "") + mark
}
