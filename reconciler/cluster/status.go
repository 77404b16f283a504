// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// Reason of events.
const clusterChanged = "ClusterConditionChanged"

// status is the whole new status of a Cluster. While it is being connected to, what was said of it before stands: a
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
	out.Conditions = shipper.SetCondition(out.Conditions, ready, metav1.NewTime(now))
	return out
}

// changes are the events that tell how the condition changed: a warning when the cluster was lost.
func changes(was, is *shipper.Cluster) []report.Event {
	note := report.Changes(was.Status.Conditions, is.Status.Conditions)
	if note == "" {
		return nil
	}
	eventType := corev1.EventTypeNormal
	if c := shipper.FindCondition(is.Status.Conditions, shipper.ClusterReady); c.Status == corev1.ConditionFalse {
		eventType = corev1.EventTypeWarning
	}
	return []report.Event{{Type: eventType, Reason: clusterChanged, Action: "UpdateStatus", Note: note}}
}
