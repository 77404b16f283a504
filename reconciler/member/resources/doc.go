// SPDX-License-Identifier: Apache-2.0

// Package resources places the content of InstallationTargets with spec.resources in application clusters, and removes it.
//
// # Which target writes
//
// Objects keep their names, so two Releases of an Application cannot be side by side in a cluster. Of the targets that list a cluster and
// are in effect, the one of the newest Release writes there. The others report SupersededByNewer. A target that leaves a cluster
// removes the objects only if no other target lists it, by what the management cluster's API server says, and if the writer of the anchor
// is the target itself or is gone. All targets of an Application share an anchor, so one pass works on one after the other (siblings.go).
//
// # The anchor
//
// One ConfigMap for each Application and cluster, in shipper-system of the cluster, where no tenant writes: shipper.PlacedAnchorName. It
// lists the objects with UID and digest. Objects have no reference to it: they may be in other namespaces or in none. It is written with
// all that is about to be written first, each such entry pending, then the objects, then the anchor with what is there. So a pass that is
// killed leaves nothing that the anchor does not list, and the next pass goes on. At rest the cached anchor and cached metadata decide:
// nothing is rendered, read from the API server or written.
//
// # What becomes of an object
//
//	the object in the cluster               what happens
//	is not there                            it is made
//	is the Application's, same digest       nothing
//	is the Application's, another digest    it is written; with driftPolicy Halt only if the content has changed
//	is another Application's                ObjectConflict; other objects go on
//	is anything else                        by apply.takeOver: NotTakenOver with its diff, or it is taken over as it was read
//	is a Namespace or a definition          with takeOver Never it is used as it is
//
// An object is the Application's if its annotation shipper.booking.com/owner says so, or if it is what the anchor lists and the annotation
// was removed. It is another Application's if the annotation names one whose anchor lists it, or if a chart has it. Objects that were not
// taken are in no cache and cause no event: they are read again after 4 s, or later where they are many; while nothing changes, the
// interval doubles, up to 1 min.
//
// # Removal
//
// Objects go by the UID and digest that the anchor lists: everything but definitions and Namespaces first, the last written ones before
// the rest; then CustomResourceDefinitions, then Namespaces, each when the others are gone, and the anchor at the end. With WhenEmpty a
// definition stays while there are objects of its kind, and a Namespace while it holds objects that no process makes in every cluster, or
// that Shipper may not list.
package resources
