// SPDX-License-Identifier: Apache-2.0

// Package inplace changes workloads that exist once for all Releases of an Application: StatefulSets, DaemonSets, and Deployments that
// cannot run twice. The installation lists them and never writes them; here they are written at the step that is due.
//
//	CapacityTargets ─┐
//	anchors ─────────┼─► pick: whose template ─► orient: which Pods have it ─► write, or evict a Pod ─► Shares, for capacity
//	the workload ────┘
//
// Of the Releases that have the workload, the contender is the newest with capacity, and those before it with capacity are older. A
// StatefulSet gets the contender's template with a partition, so that its share of the Pods is replaced. On the way back from a share the
// partition is raised, and Pods that are then below it are evicted one by one. A contender that had all Pods is the template that the
// controller makes Pods below the partition of; on the way back from there the object gets the older template, and BaseAnnotation names the
// contender. DaemonSets, Deployments and StatefulSets that users update (OnDelete) get the contender's template when it has all capacity.
//
// What decides is in caches: at rest nothing is requested. The content is what the Release has stored in the cluster. Pods are listed only
// while one may have to be evicted: they have no label of Shipper.
//
// ConfigMaps and Secrets that these Pods use are copies (package lots), which change with the template. Their names have the suffix of the
// Release that made them, for the hash of a Secret's content may stand in no name: passwords could be tried against it. Which copies a
// Release uses is decided when it is rendered (package installation), and stored with what it writes.
package inplace
