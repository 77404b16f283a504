// SPDX-License-Identifier: Apache-2.0

// Package strategy plans a rollout: given everything observed of an Application's Releases it says what to ask of their
// targets now, what is awaited, and why.
//
// Releases have roles. The contender is the newest; the incumbent is the newest complete one before it. Releases before
// the contender that never completed are superseded: they are left as they are until others serve in their place.
// Complete ones older than the incumbent are retired: they get nothing.
//
// A step of the contender's strategy wants a capacity and a traffic weight of both sides, in every cluster. They are
// brought about in an order in which traffic never runs ahead of capacity:
//
//	install the contender → raise capacity → raise traffic → lower traffic → lower capacity
//
// Each move waits, in all clusters, for what it depends on: a side's traffic is raised when its own capacity is ready;
// traffic and capacity are lowered when the other side has its own. Moving forward this is the contender's
// installation, capacity and traffic, then the incumbent's traffic and capacity; moving backward it is the mirror. No
// direction has to be remembered, so that a user may turn round halfway, and no step has to be taken before another.
//
// Last come the readinessGates of the step, conditions in the Release that others own. They hold up nothing that is asked of
// targets; without them the step does not count as achieved. A step that was achieved once asks for them no more: whoever
// goes back there waits for nobody.
//
// In a cluster where nobody else serves, a Release waits for no other cluster: one out of reach must not keep the others
// from serving. The step is achieved when all are there.
//
// Everything is planned per cluster, though today every cluster gets the same values of the step.
package strategy
