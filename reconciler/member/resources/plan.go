// SPDX-License-Identifier: Apache-2.0

package resources

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/reconciler/member/drift"
)

// action is what to do with one object of the content in one cluster.
type action string

const (
	// create what is not there.
	create action = "create"
	// write what is the Application's and has to be otherwise.
	write action = "write"
	// take what is not the Application's yet.
	take action = "take"
	// keep what is the Application's as it is.
	keep action = "keep"
	// use what is not the Application's as it is, and do not list it.
	use action = "use"
	// compare what is not the Application's with the manifest, and decide then.
	compare action = "compare"
	// leave what is not the Application's alone, and report it.
	leave action = "leave"
	// refuse: the object is another Application's.
	refuse action = "refuse"
	// wait until what is there is gone.
	wait action = "wait"
	// await the cluster's serving the kind.
	await action = "await"
)

// writes reports whether an action is a write.
func (a action) writes() bool { return a == create || a == write || a == take }

// rules are what decides about objects, apart from what is there.
type rules struct {
	owner, app string
	takeOver   shipper.TakeOverPolicy
	// halt is set where edited objects are left alone.
	halt bool
}

// item is one object of the content and what is known of it in the cluster.
type item struct {
	object *unstructured.Unstructured
	// want identifies the object and the manifest.
	want entry
	// known is what the anchor says of it; nil for nothing.
	known *entry
	// unserved is set while the cluster does not serve the kind.
	unserved bool
	// live is the object in the cluster; nil if it does not exist. whose is the Application that owns it; empty if this one or none does.
	live  *metav1.PartialObjectMetadata
	whose string
	// maker is the object that owns live, or that a controller made it for, where the anchor does not list it as written; empty if none does.
	maker string
	// compared is how it differs from the manifest; nil while that is not known.
	compared *drift.Comparison
	// failed is why it could not be read or written.
	failed error
	// managed is set for a correction: it leaves alone what was written by a subresource, as an autoscaler does.
	managed []metav1.ManagedFieldsEntry

	action action
	done   bool
}

// decide says what to do with an object.
func (r rules) decide(s *item) action {
	switch {
	case isSystem(s.want.key()): // admission refuses these; anchors are there
		s.whose = "Shipper itself"
		return refuse
	case s.object != nil && objects.OwnOfCluster(s.object) != "": // neither are these in content
		s.whose = "the cluster: " + objects.OwnOfCluster(s.object)
		return refuse
	case s.unserved:
		return await
	case s.live == nil:
		return create
	case s.maker != "": // before isOurs: a ReplicaSet has the annotations of its Deployment
		return refuse
	case isOurs(s.known, r.owner, s.live):
		return r.ofOurs(s)
	case r.takeOver == shipper.TakeOverNever && isShared(s.want.key()):
		return use
	case s.whose != "":
		return refuse
	case s.live.DeletionTimestamp != nil:
		return wait
	}
	switch r.takeOver {
	case shipper.TakeOverAlways:
		return take
	case shipper.TakeOverIfNoDiff:
		if s.compared == nil {
			return compare
		}
		if !s.compared.Drifted() && s.compared.Problem == "" {
			return take
		}
	case shipper.TakeOverNever:
	}
	return leave
}

// isOurs reports whether an object is the Application's: it says so, and is not a chart's; or it is what the anchor lists and a user has
// removed the mark.
func isOurs(known *entry, owner string, live *metav1.PartialObjectMetadata) bool {
	by := live.Annotations[shipper.PlacedOwnerAnnotation]
	if live.Labels[shipper.OwnedByLabel] != "" {
		by = ""
	}
	return by == owner || by == "" && isListed(known, live)
}

// isListed reports whether an object is the one that the anchor lists as written.
func isListed(known *entry, live *metav1.PartialObjectMetadata) bool {
	return known != nil && !known.Pending && known.UID == live.UID
}

// ofOurs says what to do with an object of the Application.
func (r rules) ofOurs(s *item) action {
	written := s.known != nil && !s.known.Pending && s.known.Digest == s.want.Digest && s.known.UID == s.live.UID
	marked := marked(r.owner, r.app, s.want.Digest, s.live)
	switch {
	case s.live.DeletionTimestamp != nil:
		return wait
	case marked, r.halt && written:
		return keep
	}
	return write
}

// marked reports whether an object has the marks of one that was written from the manifest of a digest.
func marked(owner, app, digest string, live *metav1.PartialObjectMetadata) bool {
	return live.Annotations[shipper.InstalledDigestAnnotation] == digest &&
		live.Annotations[shipper.PlacedOwnerAnnotation] == owner && live.Labels[shipper.AppLabel] == app
}

// isShared are objects that a whole cluster shares.
func isShared(k objects.Key) bool {
	return k.Group == "" && k.Kind == "Namespace" || isDefinition(k)
}

// isSystem reports whether an object is Shipper's own namespace in a cluster, or is in it.
func isSystem(k objects.Key) bool {
	return k.Namespace == shipper.SystemNamespace || k.Group == "" && k.Kind == "Namespace" && k.Name == shipper.SystemNamespace
}

// isDefinition reports whether an object is a CustomResourceDefinition.
func isDefinition(k objects.Key) bool {
	return k.Group == "apiextensions.k8s.io" && k.Kind == "CustomResourceDefinition"
}

// listed is what the anchor is to say of an object before anything is written; false when nothing.
func (s *item) listed() (entry, bool) {
	out := s.want
	switch s.action {
	case create, await:
		out.UID, out.Pending = "", true
	case write, take:
		out.UID, out.Pending = s.live.UID, true
	case keep:
		out.UID = s.live.UID
		if s.known != nil {
			out.At = s.known.At
		}
	case "", wait, compare, leave, refuse, use:
		if s.known == nil || s.action != "" && s.action != wait {
			return entry{}, false
		}
		return *s.known, true
	}
	if s.known != nil && s.known.UID == out.UID {
		out.At = s.known.At
	}
	return out, true
}

// plan is what the anchor is to say before anything is written, and what of it is no longer in the content.
func plan(all []*item, a *anchor) (union, dropped []entry) {
	content := make(map[objects.Key]bool, len(all))
	for _, s := range all {
		content[s.want.key()] = true
		switch e, lists := s.listed(); {
		case s.failed != nil && s.known != nil:
			union = append(union, *s.known)
		case s.failed == nil && lists:
			union = append(union, e)
		}
	}
	if a == nil {
		return union, nil
	}
	for _, e := range a.inventory {
		if !content[e.key()] {
			dropped = append(dropped, e)
		}
	}
	return append(union, dropped...), dropped
}

// placed is what the anchor is to say after the writes, and whether all of the content is in the cluster.
func placed(all []*item, at int64) (inventory []entry, whole bool) {
	whole = true
	for _, s := range all {
		e, lists := s.listed()
		switch {
		case s.failed != nil && s.known != nil && !s.action.writes():
			e, lists = *s.known, true
		case s.failed == nil && s.action.writes() && s.done:
			e.UID, e.Pending, e.At = s.want.UID, false, at
		}
		if lists {
			inventory = append(inventory, e)
		}
		whole = whole && s.failed == nil && (s.done || s.action == keep || s.action == use)
	}
	return inventory, whole
}
