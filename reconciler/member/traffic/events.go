// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// Reasons of events.
const (
	targetChanged  = "TrafficTargetConditionChanged"
	clusterChanged = "ClusterTrafficConditionChanged"
)

// changes are the events for changed conditions. Foreign endpoints are a warning of their own.
func changes(was, is *shipper.TrafficTarget) []report.Event {
	return append(foreignEvents(was, is), report.ConditionEvents(targetChanged, clusterChanged,
		withoutOwned(was.Status.Conditions), withoutOwned(is.Status.Conditions), reported(was.Status.Clusters), reported(is.Status.Clusters))...)
}

// foreignEvents warn of endpoints that are of no Release, when there are others than before.
func foreignEvents(was, is *shipper.TrafficTarget) []report.Event {
	before := map[string]string{}
	for _, c := range was.Status.Clusters {
		if owned := shipper.FindCondition(c.Conditions, shipper.TargetEndpointsOwned); owned != nil {
			before[c.Name] = owned.Message
		}
	}
	var out []report.Event
	for _, c := range is.Status.Clusters {
		if owned := shipper.FindCondition(c.Conditions, shipper.TargetEndpointsOwned); owned != nil && owned.Message != before[c.Name] {
			out = append(out, report.Event{
				Type: corev1.EventTypeWarning, Reason: shipper.ForeignEndpoints, Action: "UpdateStatus",
				Note: fmt.Sprintf("cluster %q: %s", c.Name, owned.Message),
			})
		}
	}
	return out
}

// reported are the conditions per cluster without EndpointsOwned.
func reported(list []shipper.ClusterTrafficStatus) []report.Cluster {
	out := clusters(list)
	for i := range out {
		out[i].Conditions = withoutOwned(out[i].Conditions)
	}
	return out
}

// clusters are the conditions per cluster.
func clusters(list []shipper.ClusterTrafficStatus) []report.Cluster {
	out := make([]report.Cluster, 0, len(list))
	for _, c := range list {
		out = append(out, report.Cluster{Name: c.Name, Conditions: c.Conditions})
	}
	return out
}
