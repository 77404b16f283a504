// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// action is what to do with one object in one cluster.
type action string

const (
	// create what is not there.
	create action = "create"
	// write what is there and has to be otherwise.
	write action = "write"
	// mark what is there as ours and leave the rest of it alone.
	mark action = "mark"
	// keep what is there.
	keep action = "keep"
	// wait until what is there is gone.
	wait action = "wait"
	// refuse: the object has another owner.
	refuse action = "refuse"
)

// decide says what to do with an object of a target. live is nil when it is not in the cluster, a when there is no
// anchor yet. Objects without a namespace have no owner, nor have those that are kept. Workloads in place are written at their step.
func decide(it *shipper.InstallationTarget, want item, a *anchor, live *metav1.PartialObjectMetadata) action {
	switch {
	case live == nil && want.InPlace:
		return keep
	case live == nil:
		return create
	}
	app := it.Labels[shipper.AppLabel]
	ours := a.owns(live) || app != "" && live.Labels[shipper.AppLabel] == app && live.Labels[shipper.OwnedByLabel] != ""
	mine := ours && live.Labels[shipper.OwnedByLabel] == it.Name
	owned := want.Namespace == "" || a.owns(live) != kept(want, live.Annotations)
	current := live.Annotations[shipper.InstalledDigestAnnotation]
	switch {
	case !ours && isShared(want):
		return keep
	case !ours || isMade(live):
		return refuse
	case want.InPlace && mine && current == want.Digest && !owned:
		return mark // it has lost its owner
	case want.InPlace:
		return keep
	case live.DeletionTimestamp != nil:
		return wait
	case mine && current == want.Digest && owned:
		return keep
	case mine && (current == "" || current == want.Digest):
		return mark
	case mine || it.Spec.CanOverride:
		return write
	default:
		return keep
	}
}

// isMade reports whether a controller made an object: ReplicaSets, Pods, EndpointSlices and the like have the labels of ours that they were
// made for, and no anchor as an owner.
func isMade(live *metav1.PartialObjectMetadata) bool {
	return metav1.GetControllerOf(live) != nil && !slices.ContainsFunc(live.OwnerReferences, isAnchor)
}

// isShared are objects that a whole cluster shares: found, they are used, and they are never deleted.
func isShared(i item) bool {
	gk := i.gvk().GroupKind()
	return gk.Group == "" && gk.Kind == "Namespace" ||
		gk.Group == "apiextensions.k8s.io" && gk.Kind == "CustomResourceDefinition"
}

// whose names the owner of an object that is not ours.
func whose(live *metav1.PartialObjectMetadata) string {
	switch app := live.Labels[shipper.AppLabel]; {
	case isMade(live):
		return madeBy(metav1.GetControllerOf(live).Kind)
	case app != "" && live.Labels[shipper.OwnedByLabel] != "":
		return "it belongs to the Application " + quote(app)
	case app != "":
		return "it has the label " + shipper.AppLabel + " and was not installed by Shipper"
	default:
		return "it was not installed by Shipper"
	}
}

// madeBy says that a controller made an object for one of a kind.
func madeBy(kind string) string { return "it was made for a " + kind }

func quote(s string) string {
	return `"` + s + `"`
}

// owners are the references an object is to have: the other anchors it has, and own, which is this target's.
func owners(
	it *shipper.InstallationTarget, live *metav1.PartialObjectMetadata, own metav1.OwnerReference,
) []metav1.OwnerReference {
	var out []metav1.OwnerReference
	if live != nil {
		out = otherAnchors(it, live)
	}
	return append(out, own)
}

// otherAnchors are the references of an object to anchors of other targets.
func otherAnchors(it *shipper.InstallationTarget, live *metav1.PartialObjectMetadata) []metav1.OwnerReference {
	var out []metav1.OwnerReference
	for _, ref := range live.OwnerReferences {
		if isAnchor(ref) && ref.Name != shipper.AnchorName(it.Name) {
			out = append(out, ref)
		}
	}
	return out
}

// definitions is how many CustomResourceDefinitions come first: hooks may be of their kinds.
func definitions(steps []step) int {
	for n, s := range steps {
		if s.item.Kind != "CustomResourceDefinition" {
			return n
		}
	}
	return len(steps)
}
