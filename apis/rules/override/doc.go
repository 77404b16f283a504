// SPDX-License-Identifier: Apache-2.0

// Package override decides which ResourceOverrides bear on an Application and in which order, and what their rules change in a cluster.
// Package override of chart applies the result to objects.
//
// # Order
//
// The ResourceOverrides of the global namespace that are not mandatory come first, then those of the Application's namespace, then the
// mandatory ones. Each group is ordered by priority, then by name. Rules keep their order. The later change wins, but for a deletion, which
// is final. A Release that restores another one has the copies of that one, with the mandatory ones of now instead of those of then.
//
// # Reach
//
// A ResourceOverride changes objects of the Application's namespace. One in the global namespace also changes objects of other namespaces,
// those without a namespace, and those of rbac.authorization.k8s.io.
package override
