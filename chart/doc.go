// SPDX-License-Identifier: Apache-2.0

// Package chart has what the packages below it share: the errors that users see, and the guard around parsers of untrusted input.
//
// Together these packages turn the chart of an Application into objects for a cluster:
//
//   - repository fetches charts from Helm repositories and OCI registries, and caches them. Its Catalog is what most callers use.
//   - index parses the index of a repository, and finds the version that a constraint means.
//   - verify checks digests, and Helm signatures.
//   - values merges the values of an Application for one cluster.
//   - render opens an archive, runs its templates in package engine, and returns the objects to install.
//   - duplicates removes elements of lists that server-side apply refuses, without effect on containers.
//   - lots decides what becomes of each rendered object: it exists once per Release, is shared, or is changed in place.
//   - objects normalises, digests, splits and judges the objects of Applications with resources, which have no chart.
//   - lru and keyedsemaphore bound memory and concurrency.
//
// Package repository imports index, verify, values and render; render imports duplicates, lots, values and verify; all import chart.
//
// Tenants write charts, indexes, signatures and values. Every package bounds its input, so that no tenant can take more than its
// share or end the process.
package chart
