// SPDX-License-Identifier: Apache-2.0

// Package integration tests reconcilers in this process on real API servers of one fleet: those of application clusters together, where
// tests write the Releases' targets; that of template.resources; and, in a management cluster of its own, the rollout reconciler,
// where targets are achieved at once. test/e2e tests the binaries.
package integration
