// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// waiting are types of conditions that are True when nothing is awaited.
var waiting = []string{
	shipper.ReleaseScheduled, shipper.ReleaseStrategyExecuted, shipper.ReleaseComplete, shipper.ReleaseAdvancing, shipper.ReleaseHealthy,
	shipper.TargetReady, shipper.TargetOperational, shipper.ApplicationReleaseSynced, shipper.ApplicationValidHistory,
	shipper.ApplicationResourcesSelected, shipper.ClusterJoined, shipper.ClusterPropertiesKnown,
	shipper.StrategyContenderAchievedInstallation, shipper.StrategyContenderAchievedCapacity, shipper.StrategyContenderAchievedTraffic,
	shipper.StrategyContenderAchievedReadiness, shipper.StrategyContenderAchievedApprovals, shipper.StrategyContenderAchievedChecks,
	shipper.StrategyIncumbentAchievedCapacity, shipper.StrategyIncumbentAchievedTraffic, shipper.StrategyContenderAchievedWait,
	shipper.StrategyContenderAchievedBeforeTasks,
}

// explains is law 10.
func (l *laws) explains(c change) {
	if c.object == nil || !isReconciler(c.by.process()) || !strings.HasPrefix(c.kind, shipper.GroupName+"/") {
		return
	}
	for _, path := range [][]string{{"status", "conditions"}, {"status", "strategy", "conditions"}} {
		conditions, _, _ := unstructured.NestedSlice(c.object.Object, path...)
		for _, one := range conditions {
			m, _ := one.(map[string]any)
			kind, _ := m["type"].(string)
			reason, _ := m["reason"].(string)
			if m["status"] == "True" || !slices.Contains(waiting, kind) || kind == shipper.ReleaseAdvancing && reason == shipper.AdvancingComplete {
				continue
			}
			message, _ := m["message"].(string)
			if reason == "" || message == "" {
				l.offend(10, "%s %s: condition %s is %v, reason %q, message %q", c.kind, c.object.GetName(), kind, m["status"], reason, message)
			}
		}
	}
}
