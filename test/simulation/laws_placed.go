// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// lacksEnd is what a Release does not have in a cluster that it has at the end of a wave; empty if it has all.
func (l *laws) lacksEnd(h *host, rel *shipper.Release) string {
	if rel.Spec.Environment.Resources != nil {
		return l.lacksPlaced(h, rel)
	}
	s := rel.Spec.Environment.Strategy
	return l.lacks(h, rel, s.Steps[s.LastStep()])
}

// lacksPlaced is what a Release with resources lacks in a cluster, by what its API server holds: the anchor is its own, nothing in it is
// pending, and no content is sick.
func (l *laws) lacksPlaced(h *host, rel *shipper.Release) string {
	anchor, content := &corev1.ConfigMap{}, &corev1.ConfigMap{}
	if !h.read(configMaps, shipper.SystemNamespace, shipper.PlacedAnchorName(namespace, appName), anchor) {
		return "it has no anchor"
	}
	switch {
	case anchor.Data[shipper.AnchorTargetUIDKey] != l.targetUID(rel):
		return "its anchor is that of another Release"
	case strings.Contains(anchor.Data["Inventory"], `"Pending":true`):
		return "objects are pending"
	case h.read(configMaps, namespace, "a", content) && content.Data["k"] == sick:
		return "its content is sick"
	}
	return ""
}

// placedBy reports whether an object is the anchor of a Release with resources.
func (l *laws) placedBy(o *unstructured.Unstructured, rel *shipper.Release) bool {
	uid, _, _ := unstructured.NestedString(o.Object, "data", shipper.AnchorTargetUIDKey)
	return uid != "" && rel.Spec.Environment.Resources != nil && uid == l.targetUID(rel)
}

// targetUID is the UID of the InstallationTarget of a Release.
func (l *laws) targetUID(rel *shipper.Release) string {
	it := l.world.hosts[management].get(kindOf("installationtargets"), namespace, rel.Name)
	if it == nil {
		return "none"
	}
	return string(it.GetUID())
}
