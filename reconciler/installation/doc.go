// SPDX-License-Identifier: Apache-2.0

// Package installation puts what a Release's chart renders to into application clusters, and takes it out again.
//
// # What is written
//
// In each cluster the ConfigMap `<target>-anchor` comes first: it owns every namespaced object of the target, so
// that the cluster's own garbage collector removes them when the anchor goes, and it lists what was installed. Then
// the objects are server-side applied in the order the chart room gives, all clusters at the same time. Every
// object carries the digest of the manifest it was written from: what has it already is not written. At rest
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
// A Namespace or CustomResourceDefinition that is there already and is not ours is used as it is. Neither is ever
// deleted.
//
// # How it goes away
//
// A finalizer keeps the target until its anchor is gone from every cluster. What the target wrote is deleted first,
// unless another anchor owns or lists it too; then the anchor, in the foreground, so that it goes after whatever else
// it owns. A cluster is remembered in status.clusters before anything is written there, so that one that is taken off
// spec.clusters is cleaned, also after a crash. A cluster that cannot be reached keeps the finalizer; one whose
// Cluster object is gone is given up.
//
// # Whose an anchor is
//
// The anchor says the UID of its target. One with another UID is adopted by the target that installs: after a restore
// of the management cluster all targets have new UIDs. A target that is deleted removes what has its own UID. What has
// another is judged by the target's status: when a pass has been through in that cluster, the anchor was this target's
// and was adopted by another since, most likely that of another management cluster, and everything is left to that one,
// which an event tells. Otherwise the target was restored and deleted before it could adopt, and the anchor is adopted
// first and then removed. A restore that brings back the status too, and a deletion before the first pass, leave what
// was installed behind: rather that than to delete what somebody else runs.
package installation
