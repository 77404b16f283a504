// SPDX-License-Identifier: Apache-2.0

// Package index parses the index.yaml of a chart repository, and finds the version that a constraint means. When none does, its
// error lists the nearest versions. It makes no requests.
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
package index
