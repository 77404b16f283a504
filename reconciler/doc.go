// SPDX-License-Identifier: Apache-2.0

// Package reconciler answers what happens next: it converges what was admitted.
//
//	Application ─ rollout ─► Release, InstallationTarget ─ installation ─┐
//	                              ├── CapacityTarget ───── capacity ─────┼─ fleet ─► application clusters
//	                              └── TrafficTarget ────── traffic ──────┘
//	Cluster, Secret ─ cluster ─► fleet              RolloutBlock ─ rolloutblock ─► RolloutBlock.status
//	ConfigMap ────── identity ─► fleet
//
// Each object has one writer in Shipper:
//
//	rollout       Releases and their status; the three targets; an Application's status, and its template after an abort
//	installation  an InstallationTarget's finalizer and status; objects in application clusters
//	capacity      a CapacityTarget's status; the replicas of Deployments
//	traffic       a TrafficTarget's status; the traffic label of Pods
//	rolloutblock  a RolloutBlock's status; overrides that name a RolloutBlock that is gone
//	cluster       a Cluster's status
//	identity      the ConfigMap with the management cluster's identity, once
//
// Package fairqueue orders requests; package recorder writes events.
//
// Every reconciler is level-based: it reads the state of the world and does not depend on the event that queued the request. It
// may crash at every line and goes on from there. It writes nothing that is already so, and it does not poll. One leader runs at a time:
// package fence keeps a former leader from writing.
package reconciler
