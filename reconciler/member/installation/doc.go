// SPDX-License-Identifier: Apache-2.0

// Package installation puts what a Release's chart renders to into application clusters, and takes it out again.
//
// # What is written
//
// In each cluster the ConfigMap `<target>-anchor` comes first: it owns every namespaced object of the target, so
// that the cluster's own garbage collector removes them when the anchor goes, and it lists what was installed. Then
// the objects are server-side applied in the order the chart room gives, all clusters at the same time. Every
// object carries the digest of the manifest it was written from: an object with that digest is not written again. At rest
// nothing is rendered at all, because the anchor remembers what the rendering was made from; a chart that has
// vanished disturbs nothing that is installed.
//
// # Who may write what
//
//	the object in the cluster            what happens
//	is not there                         it is made; a Deployment with no replicas
//	is this target's, same digest        nothing
//	is this target's, no digest          it is adopted: marked, and otherwise left as it is
//	is this target's, another digest     it is written; the replicas of a Deployment are left alone
//	is another Release's of the same     it is taken over when spec.canOverride is true, which it is for the newest
//	Application                          Release: on abort the incumbent becomes the newest and takes it back
//	is anything else                     ObjectConflict; nothing of the target is written in that cluster
//
// What a Release rendered to is stored in shipper-system of the cluster before any of it is written (stored.go), and from then on read from
// there. Workloads in place are listed by the anchor and never written here: package inplace reads them from what is stored, and writes
// them at their step. Where an incumbent has traffic or Pods, a Service keeps its ports (ports.go); package traffic takes them away.
//
// What an anchor of another management cluster owns is anything else, whatever its labels say; so is an object without a
// namespace that an anchor of another Application lists. A Namespace or CustomResourceDefinition that is there already and
// is not ours is used as it is. Neither is ever deleted.
//
// # Hooks
//
// Hooks (hooks.go, hookrun.go) are run between the reading of all there is and the writing, and after it. The anchor remembers
// each run, under the key `Hooks`, before its object is made and again with the object's UID; the object says for which run it
// was made. So a pass goes on where the last one was killed:
//
//	the anchor remembers     the object                 the pass
//	nothing                  is not there               remembers the run, and makes it
//	nothing                  is there                   has it removed, or fails: the delete policy says
//	a run without UID        is not there               makes it
//	a run without UID        says it is of that run     remembers its UID
//	a run with UID           is that one                looks whether it has ended, or is late
//	a run with UID           is not there, or another   fails: it was removed before its end was seen
//	a run that ended         whatever                   goes on, or says why not
//	a pending run            whatever                   goes on: it is one of the deletion
//
// While one runs the pass is over. An event of the object brings the next one, and the time when it is late. Where the anchor
// is deleted, the target's status remembers what succeeded.
//
// Hooks of the deletion (deletehooks.go) are recorded as pending when a Release is installed. When the Application is deleted, the rollout
// reconciler names in an annotation of a target the clusters where its hooks count. Pre-delete hooks run there while everything stays,
// capacity and traffic too; the Releases are deleted when the statuses say that they have succeeded. Post-delete hooks run between the
// removal of what the anchor lists and that of the anchor, which remembers their runs, and when no other anchor of the Application is
// left. Both are those that were stored when the Release was installed. One that failed is tried again, ever later.
//
// # How it goes away
//
// A finalizer keeps the target until its anchor is gone from every cluster. What the target wrote is deleted first,
// unless another anchor owns or lists it too; then the anchor, in the foreground, so that it goes after whatever else
// it owns. A cluster is remembered in status.clusters before anything is written there, so that one that is taken off
// spec.clusters is cleaned, also after a crash. A cluster that cannot be reached keeps the finalizer; one whose
// Cluster object is gone is given up.
//
// Kept objects stay: PersistentVolumeClaims, and objects with Helm's annotation for it. No anchor owns such an object: the reconciler
// removes an anchor that the original made its owner. An object with another owner is left to that owner. An
// object without a namespace goes with the last target that lists it, whichever of the Application's wrote it last.
//
// Another Release may be taking over what is to be removed. So the other anchors are read from the API server, after the
// object, which is deleted only as it was read. An object that was written meanwhile is examined again. What another anchor lists and does
// not own yet, since its target waits for a hook before it writes, gets that anchor for its owner.
//
// A cluster may get another name by a second Cluster object. Where a target leaves one name and stays by the other, nothing
// is removed. Clusters are distinguished by the UID of their namespace kube-system, one that does not answer by its address.
//
// A user may delete the anchor, or the whole namespace. Objects without a namespace stay then, and nothing in the namespace says which
// target they belong to. Therefore a second ConfigMap, in shipper-system of the cluster, lists them with UIDs (scopedlist.go): pending
// before they are written, then as they were written. The name of the list depends on the management cluster, the namespace and the target.
// A target that goes where its anchor is gone deletes what is listed, if it is still that very object, says that it is the target's and
// was written from the same manifest, and no other anchor lists it, nor another Application; then the list. What another Release wrote last
// counts if that has no list any more, and a pending entry counts for any object that says that it
// is the target's.
//
// The status reports the list. Where there is none, as after an upgrade or when a user has deleted it, it is written from the status once;
// versions without lists find what they know in the status.
//
// # Whose an anchor is
//
// Several management clusters may share an application cluster. Each has an identity (reconciler/identity), and each anchor
// says the identity of the one that wrote it, and the UID of its target. Where another management cluster has an anchor of
// the Application in the namespace, nothing is written: not here, and not by capacity and traffic either. It is by
// Application and not by object, because Pods of both would share one Service. When the other's anchors go, an event of them
// lets this one go on.
//
//	the anchor says                       install                 uninstall
//	our identity, this target's UID       nothing                 it goes, with what was installed
//	our identity, another UID             it is adopted           it goes, with what was installed
//	no identity, this target's UID        it is adopted           it goes, with what was installed
//	no identity, another UID              it is adopted           all is left alone, and an event says so
//	another identity                      ObjectConflict          all is left alone, and an event says so
//
// After a restore of the management cluster all targets have new UIDs, and its identity is what it was. Anchors without
// an identity are the original's. They are adopted when they are first seen, not when they next
// change: until then another management cluster could take them for its own. Adopting writes the anchor alone.
//
// At rest, the anchor is read from the cache. Before an anchor is written or goes it is read from the API server, and the write
// holds for what was read only; before a new one is made, the API server is asked for those of others. So an anchor never
// changes hands between two management clusters. Two that begin with the same Application in the same moment may both make
// their anchors, see each other's, and both refuse, until one of the two Applications goes.
//
// # Status
//
// When a target is installed, its objects are surveyed from the caches: counts by kind, and some that are not healthy. Nobody
// waits for that. Where the Application's driftPolicy wants it, objects that were edited since they were compared last are
// compared with what a dry run of writing them again would make of them; the result is in memory only, so that
// after a start all are compared once. Who edits an object again and again is corrected ever later.
package installation
