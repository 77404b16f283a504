// SPDX-License-Identifier: Apache-2.0

// Package strategy plans a rollout. From all that was observed of an Application's Releases it computes the specs of their
// targets, the condition that the rollout waits for, and the messages that say why.
//
// Releases have roles. The contender is the newest; the incumbent is the newest complete one before it. Releases before the
// contender that never completed are superseded: they stay as they are until the contender and the incumbent replace their
// Pods. Complete Releases older than the incumbent are retired: they get no capacity and no traffic.
//
// A step of the contender's strategy sets a capacity and a traffic weight for the contender and for the incumbent, in every
// cluster. The plan makes the changes in an order in which traffic never exceeds capacity:
//
//	install the contender → raise capacity → raise traffic → lower traffic → lower capacity
//
// Each change waits, in all clusters, for the change that it depends on: a Release's traffic is raised when its own capacity is
// ready; its traffic and capacity are lowered when the other Release has its own. A rollout that advances changes the
// contender's installation, capacity and traffic, then the incumbent's traffic and capacity; a retreat does the reverse. The
// plan stores no direction, so a user may reverse at any step and may skip steps.
//
// The readinessGates of the step come last. They are conditions in the Release that other controllers own. They delay no change
// of targets, but the step is not achieved without them. A step that was achieved once does not check them again, so a retreat
// to it does not wait for other controllers.
//
// In a cluster where no other Release serves, a Release waits for no other cluster: an unreachable cluster must not keep the
// others from serving. The step is achieved when all clusters are ready.
//
// Everything is planned per cluster, although every cluster gets the same values of the step today.
package strategy
