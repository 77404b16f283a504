// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// Reasons of events.
const (
	resourcesRemoved = "ResourcesRemoved"
	resourcesLeft    = "ResourcesLeft"
	objectKept       = "ObjectKept"
)

// Owner is the Application that has placed an object, or has its anchor; ok is false where there is none, and for an object that
// says so but is a chart's. A user may have removed the mark: the older form of the object has it then.
func Owner(e fleet.Event) (app types.NamespacedName, ok bool) {
	for _, o := range []client.Object{e.New, e.Old} {
		if o == nil || o.GetLabels()[shipper.OwnedByLabel] != "" {
			continue
		}
		if namespace, name, found := strings.Cut(o.GetAnnotations()[shipper.PlacedOwnerAnnotation], "/"); found {
			return types.NamespacedName{Namespace: namespace, Name: name}, true
		}
	}
	return types.NamespacedName{}, false
}

// Gone reports whether a placed object, or an anchor, is gone or going, or its marks have changed. Other changes of an anchor are our own.
func Gone(e fleet.Event) bool {
	if e.Old == nil {
		return false
	}
	if e.New == nil {
		return true
	}
	return !sameMarks(e.Old, e.New) || (e.Old.GetDeletionTimestamp() == nil) != (e.New.GetDeletionTimestamp() == nil)
}

func sameMarks(a, b client.Object) bool {
	for _, mark := range []string{shipper.InstalledDigestAnnotation, shipper.PlacedOwnerAnnotation} {
		if a.GetAnnotations()[mark] != b.GetAnnotations()[mark] {
			return false
		}
	}
	return a.GetLabels()[shipper.AppLabel] == b.GetLabels()[shipper.AppLabel]
}

// Judges reports whether a ready rule of a target is for the kind of an object: then any change may make the object ready.
func Judges(it *shipper.InstallationTarget, o client.Object) bool {
	if it.Spec.Resources == nil {
		return false
	}
	gk := o.GetObjectKind().GroupVersionKind().GroupKind()
	for _, r := range it.Spec.Resources.Ready {
		if (schema.GroupKind{Group: r.Group, Kind: r.Kind}) == gk {
			return true
		}
	}
	return false
}

// note adds an event. Objects are removed side by side.
func (p *pass) note(e report.Event) {
	p.worker.mu.Lock()
	defer p.worker.mu.Unlock()
	p.out.Events = append(p.out.Events, e)
}

func removed(cluster, owner string) report.Event {
	return report.Event{
		Type: corev1.EventTypeNormal, Reason: resourcesRemoved, Action: "Remove from " + cluster,
		Note: fmt.Sprintf("What Application %s had placed in cluster %q has been removed", owner, cluster),
	}
}

func stays(cluster, object, why string) report.Event {
	return report.Event{
		Type: corev1.EventTypeNormal, Reason: objectKept, Action: "Remove from " + cluster,
		Note: fmt.Sprintf("%s stays in cluster %q: %s", object, cluster, why),
	}
}

func leftAlone(cluster, anchor, theirs, ours string) report.Event {
	return report.Event{
		Type: corev1.EventTypeWarning, Reason: resourcesLeft, Action: "Remove from " + cluster,
		Note: fmt.Sprintf("Config map %s in cluster %q is that of the management cluster %q, and this one is %q; what it lists is left as it is",
			anchor, cluster, theirs, ours),
	}
}
