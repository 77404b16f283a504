// SPDX-License-Identifier: Apache-2.0

// Package chart resolves, fetches, renders and checks Helm charts: the version that a constraint means, its archive, the
// objects in one cluster, and whether Shipper can roll these out.
//
// Tenants write charts. Package engine runs their templates within bounds, so that no chart can take more than its share or end
// the process; this package bounds all other input.
//
// A Catalog reads repositories, and OCI registries, where a chart's tags replace the index. Resolve turns a version constraint
// into one version of the repository's index; Load fetches the archive of that version, checks its digest and keeps it;
// Chart.Render runs its templates for one Target; Manifest.Prepare returns the objects to install.
//
// # Versions
//
// Constraints are those of github.com/Masterminds/semver/v3, with the additions of Shipper's documentation:
//
//   - An empty constraint is the newest stable version.
//   - A version that stands in the index under exactly the name given always wins.
//   - Otherwise `1.2.3-4.5.6` and `1.2-4.5` are ranges, the same as `1.2.3 - 4.5.6`. A prerelease such as
//     `1.2.3-rc.1` or `1.2.3-4` stays a prerelease.
//   - A version with build metadata means that build and no other.
//
// Semver v3 reads carets below 1.0.0 narrowly: `^0.2.3` is `>=0.2.3, <0.3.0` and `^0.0.3` is that version alone.
// `~0.0.0` admits every stable version. Prereleases match only when a part of the constraint names one.
package chart
