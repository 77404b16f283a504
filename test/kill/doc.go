// SPDX-License-Identifier: Apache-2.0

// Package kill kills the reconciler (SIGKILL) after each of its writes and starts it again, through a rollout forward, one
// backward and an abort. The end must be that of an undisturbed run, and invariants must hold at every event of the
// application clusters.
//
// By default the reconciler is killed before it reads the write's response; with SHIPPER_KILL=all also in a second run, after
// it has read the response, at its next write.
package kill
