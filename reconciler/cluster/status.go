// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// Reason of events.
const clusterChanged = "ClusterConditionChanged"

// status is the whole new status of a Cluster. While the fleet connects to it, its last conditions stay: a
// restart of Shipper is no news about a cluster. properties are nil while they are not known, and left are what a leaving one waits for.
func status(c *shipper.Cluster, state fleet.State, properties *fleet.Properties, left []string, now time.Time) shipper.ClusterStatus {
	out := *c.Status.DeepCopy()
	if state.Pending && len(out.Conditions) > 0 {
		out.Conditions = leavingCondition(out.Conditions, left, now)
		return out
	}
	out.ObservedGeneration = c.Generation
	out.InService = state.Ready
	if state.KubernetesVersion != "" {
		out.KubernetesVersion = state.KubernetesVersion
	}
	ready := shipper.Condition{
		Type: shipper.ClusterReady, Status: corev1.ConditionFalse, Reason: state.Reason, Message: state.Message,
	}
	switch {
	case state.Ready:
		ready.Status = corev1.ConditionTrue
	case state.Pending:
		ready.Status = corev1.ConditionUnknown
	}
	out.Conditions = credentials(shipper.SetCondition(out.Conditions, ready, metav1.NewTime(now)), state.Credentials, now)
	out.Conditions = joined(out.Conditions, state.Ready, now)
	out.Conditions = leavingCondition(out.Conditions, left, now)
	observed(&out, state.Ready, properties, now)
	return out
}

// setAPIVersions sets the APIs of a cluster. While it is not connected, known is nil, and they stay as they were last read.
func setAPIVersions(out *shipper.ClusterStatus, known []string) {
	switch {
	case known == nil:
	case len(known) > shipper.MaxAPIVersions:
		out.APIVersions = nil
	default:
		out.APIVersions = known
	}
}

// joined is the condition that stays once the cluster was ready.
func joined(conditions []shipper.Condition, wasReady bool, now time.Time) []shipper.Condition {
	if !wasReady {
		return conditions
	}
	is := shipper.Condition{Type: shipper.ClusterJoined, Status: corev1.ConditionTrue}
	return shipper.SetCondition(conditions, is, metav1.NewTime(now))
}

// observed sets what the cluster says of itself. What cannot be read any more stays as it was last read.
func observed(out *shipper.ClusterStatus, ready bool, properties *fleet.Properties, now time.Time) {
	known := shipper.Condition{Type: shipper.ClusterPropertiesKnown, Status: corev1.ConditionTrue}
	switch old := shipper.FindCondition(out.Conditions, shipper.ClusterPropertiesKnown); {
	case !ready && old != nil && old.Status == corev1.ConditionFalse:
		// `kubectl get clusters` shows the message of the first condition that is False, which is to be that of Ready.
		known.Status, known.Reason, known.Message = corev1.ConditionUnknown, old.Reason, old.Message
	case !ready && old != nil && old.Status == corev1.ConditionTrue:
		known.Status, known.Reason = corev1.ConditionUnknown, shipper.PropertiesNotReadable
		known.Message = "the cluster is not ready: nodes, capacity, allocatable and properties are as they were last read"
	case !ready || properties == nil:
		return
	case properties.Problem() != "":
		known.Status, known.Reason, known.Message = corev1.ConditionFalse, shipper.PropertiesNotReadable, properties.Problem()
	}
	if ready && properties.Nodes != nil {
		out.Nodes = ptr.To(properties.Nodes.Count)
		out.Capacity, out.Allocatable = properties.Nodes.Capacity, properties.Nodes.Allocatable
	}
	if ready && properties.Declared != nil {
		out.Properties = properties.Declared.Properties
		if known.Message == "" {
			known.Message = properties.Declared.LeftOut
		}
	}
	out.Conditions = shipper.SetCondition(out.Conditions, known, metav1.NewTime(now))
}

// credentials is the condition about credentials that expire; nil for others.
func credentials(conditions []shipper.Condition, known fleet.Credentials, now time.Time) []shipper.Condition {
	if known == (fleet.Credentials{}) {
		return slices.DeleteFunc(conditions, func(c shipper.Condition) bool { return c.Type == shipper.ClusterCredentialsValid })
	}
	valid := shipper.Condition{Type: shipper.ClusterCredentialsValid, Status: corev1.ConditionTrue}
	if known.Reason != "" {
		valid.Status, valid.Reason, valid.Message = corev1.ConditionFalse, known.Reason, known.Message
	}
	return shipper.SetCondition(conditions, valid, metav1.NewTime(now))
}

// changes are the events about changed conditions: a warning when the cluster was lost, or its credentials are ending.
func changes(was, is *shipper.Cluster) []report.Event {
	note := report.Changes(was.Status.Conditions, is.Status.Conditions)
	if note == "" {
		return nil
	}
	eventType := corev1.EventTypeNormal
	if slices.ContainsFunc(is.Status.Conditions, func(c shipper.Condition) bool { return c.Status == corev1.ConditionFalse }) {
		eventType = corev1.EventTypeWarning
	}
	return []report.Event{{Type: eventType, Reason: clusterChanged, Action: "UpdateStatus", Note: note}}
}
