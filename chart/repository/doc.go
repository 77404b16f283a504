// SPDX-License-Identifier: Apache-2.0

// Package repository fetches charts from Helm repositories and OCI registries, where a chart's tags replace the index.
//
// A Catalog caches indexes, archives and charts. Catalog.Resolve turns a version constraint into one version of the index;
// Catalog.Load fetches the archive of that version, checks its digest, and returns the chart; Catalog.Verify checks its signature.
//
// Users choose the URLs. A Policy of package outward says which of them may be requested, redirects and resolved addresses
// included. Credentials are sent only to the URL that the owner of their Secret permits. Downloads are bounded in size, time and
// number, per namespace too.
package repository
