// SPDX-License-Identifier: Apache-2.0

// Package reconciler answers what happens next: it converges what was admitted.
//
//	Application ─ application ─► Release ─ release ─► InstallationTarget ─ installation ─┐
//	                                            ├──► CapacityTarget ───── capacity ─────┼─ fleet ─► application clusters
//	                                            └──► TrafficTarget ────── traffic ──────┘
//	Cluster, Secret ─ cluster ─► fleet                      RolloutBlock ─ rolloutblock ─► RolloutBlock.status
//	ConfigMap ────── identity ─► fleet
//
// Who writes what:
//
//	application   Releases; an Application's template when its newest Release was deleted; Application.status
//	release       the choice of clusters; the three targets; Release.status
//	installation  a target's finalizer and status; objects in application clusters
//	capacity      a target's status; the replicas of Deployments
//	traffic       a target's status; the traffic label of Pods
//	rolloutblock  a block's status; overrides of blocks that are gone
//	cluster       a Cluster's status
//	identity      the ConfigMap with the management cluster's identity, once
//
// Who is next is said by the queues of package turns. Package herald tells people what happened.
//
// Every reconciler is level-based: it reads what is, and never depends on which event woke it. Each may crash at
// every line and goes on from there. Nothing is written that is already so, nothing polls, and one leader runs at a
// time: who leads no more and does not know it is kept from writing (package term).
package reconciler
