// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// Reasons of events.
const (
	targetChanged  = "CapacityTargetConditionChanged"
	clusterChanged = "ClusterCapacityConditionChanged"
)

// changes are the events about changed conditions.
func changes(was, is *shipper.CapacityTarget) []report.Event {
	return report.ConditionEvents(targetChanged, clusterChanged,
		was.Status.Conditions, is.Status.Conditions, clusters(was.Status.Clusters), clusters(is.Status.Clusters))
}

// clusters are the conditions per cluster.
func clusters(list []shipper.ClusterCapacityStatus) []report.Cluster {
	out := make([]report.Cluster, 0, len(list))
	for _, c := range list {
		out = append(out, report.Cluster{Name: c.Name, Conditions: c.Conditions})
	}
	return out
}
