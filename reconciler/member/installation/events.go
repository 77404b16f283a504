// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// Reasons of events.
const (
	targetChanged    = "InstallationTargetConditionChanged"
	clusterChanged   = "ClusterInstallationConditionChanged"
	configMapDeleted = "ConfigMapDeleted"
	configMapAdopted = "ConfigMapAdopted"
	configMapLeft    = "ConfigMapLeft"
	configMapRemade  = "ConfigMapReplaced"
	cleanupAbandoned = "CleanupAbandoned"
	sameAsAnother    = "ClusterHasAnotherName"
)

// changes are the events about changed conditions.
func changes(was, is *shipper.InstallationTarget) []report.Event {
	return report.ConditionEvents(targetChanged, clusterChanged,
		was.Status.Conditions, is.Status.Conditions, clusters(was.Status.Clusters), clusters(is.Status.Clusters))
}

// clusters are the conditions per cluster.
func clusters(list []shipper.ClusterInstallationStatus) []report.Cluster {
	out := make([]report.Cluster, 0, len(list))
	for _, c := range list {
		out = append(out, report.Cluster{Name: c.Name, Conditions: c.Conditions})
	}
	return out
}

func anchorDeleted(cluster, name string) report.Event {
	return report.Event{
		Type: corev1.EventTypeNormal, Reason: configMapDeleted, Action: "Uninstall from " + cluster,
		Note: fmt.Sprintf("Config map %q has been deleted from cluster %q", name, cluster),
	}
}

func adopted(cluster, name string) report.Event {
	return report.Event{
		Type: corev1.EventTypeNormal, Reason: configMapAdopted, Action: "Install in " + cluster,
		Note: fmt.Sprintf("Config map %q in cluster %q belonged to another InstallationTarget of this name "+
			"and is now this one's", name, cluster),
	}
}

func remade(cluster, name string) report.Event {
	return report.Event{
		Type: corev1.EventTypeWarning, Reason: configMapRemade, Action: "Install in " + cluster,
		Note: fmt.Sprintf("Config map %q was deleted in cluster %q, not by Shipper; what it owned has another one for its owner now",
			name, cluster),
	}
}

func leftAlone(m *fleet.Member, a *anchor, name string) report.Event {
	whose := "was written for another InstallationTarget of this name, and does not say by which management cluster"
	if a.claim != nil {
		whose = fmt.Sprintf("is that of the management cluster %q, and this one is %q", a.identity, m.Identity)
	}
	return report.Event{
		Type: corev1.EventTypeWarning, Reason: configMapLeft, Action: "Uninstall from " + m.Name,
		Note: fmt.Sprintf("Config map %q in cluster %q %s; the objects there stay as they are", name, m.Name, whose),
	}
}

func staysAs(cluster, duplicate string) report.Event {
	return report.Event{
		Type: corev1.EventTypeWarning, Reason: sameAsAnother, Action: "Uninstall from " + cluster,
		Note: fmt.Sprintf("Cluster %q is the same as %q, where this is to stay; the objects there stay as they are",
			cluster, duplicate),
	}
}

func abandoned(cluster string) report.Event {
	return report.Event{
		Type: corev1.EventTypeWarning, Reason: cleanupAbandoned, Action: "Uninstall from " + cluster,
		Note: fmt.Sprintf("There is no Cluster %q any more; the objects in it stay", cluster),
	}
}
