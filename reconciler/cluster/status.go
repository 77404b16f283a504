// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// Reason of events.
const clusterChanged = "ClusterConditionChanged"

// status is the whole new status of a Cluster. While the fleet connects to it, its last conditions stay: a
// restart of Shipper is no news about a cluster.
func status(c *shipper.Cluster, state fleet.State, now time.Time) shipper.ClusterStatus {
	out := *c.Status.DeepCopy()
	if state.Pending && len(out.Conditions) > 0 {
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
	return out
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
