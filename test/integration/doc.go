// SPDX-License-Identifier: Apache-2.0

// Package integration tests the reconcilers of application clusters together, in this process, on real API servers. The tests write
// the Releases' targets themselves: no rollout reconciler runs. test/e2e tests the binaries.
package integration
