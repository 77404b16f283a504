// SPDX-License-Identifier: Apache-2.0

// Package kill kills the reconciler (SIGKILL) after each of its writes and starts it again, through a rollout forward, one
// backward and an abort. The end must be that of an undisturbed run, and invariants must hold at every event of the
// application clusters.
//
// In `make test` it is killed after every 11th write of a rollout forward, an abort, a run and a placement, before it reads the write's
// response. `make nightly` kills it after each write of all stories, and in a second run after it has read the response, at its
// next write.
package kill
