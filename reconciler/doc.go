// SPDX-License-Identifier: Apache-2.0

// Package reconciler answers what happens next: it converges what was admitted.
//
//	Application ─ rollout ─► Release ─► InstallationTarget, CapacityTarget, TrafficTarget
//	targets ─ member (a queue for each cluster) ─ fleet ─► application clusters
//	rollout ─► CheckTarget ─ check ─► metrics servers, http servers, Jobs ─► CheckTarget.status ─► rollout
//	results of member ─ targetstatus ─► the targets' status
//	Cluster, Secret ─ cluster ─► fleet              RolloutBlock ─ rolloutblock ─► RolloutBlock.status
//	ConfigMap ────── identity ─► fleet              Release, Notification ─ notify ─► servers that users name
//
// Each object has one writer in Shipper:
//
//	rollout       Releases and their status; the three targets, and CheckTargets; an Application's status, and its template after an abort
//	member        objects in application clusters, the replicas of Deployments, the traffic label of Pods
//	targetstatus  the targets' status, and their finalizers
//	check         the status of CheckTargets; the Jobs of Checks in application clusters
//	rolloutblock  a RolloutBlock's status; overrides that name a RolloutBlock that is gone
//	cluster       a Cluster's status
//	notify        a Notification's status
//	identity      the ConfigMap with the management cluster's identity, once
//
// Package queue orders requests; package recorder writes events.
//
// Every reconciler is level-based: it reads the state of the world and does not depend on the event that queued the request. It
// may crash at every line and goes on from there. It writes nothing that is already so, and it does not poll. One leader runs at a time:
// package fence keeps a former leader from writing.
package reconciler
