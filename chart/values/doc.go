// SPDX-License-Identifier: Apache-2.0

// Package values makes the values of one cluster from an Application: the content of ConfigMaps and Secrets, the common values,
// those of the region and the cluster, and JSON patches. The chart's own defaults are added later, by package render.
//
// The content of ConfigMaps and Secrets is pinned by digests, which users who may not read the Secrets can see. So the digest of a
// Secret is slow to compute, and its content is hard to guess.
package values
