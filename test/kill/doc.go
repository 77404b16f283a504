// SPDX-License-Identifier: Apache-2.0

// Package kill proves that the reconciler may die at any line. It runs between proxies that count what it writes; after
// every single write it is killed (SIGKILL) and started again, through a rollout forward, one backward and an abort. The
// end must be that of an undisturbed run, and on the way invariants hold at every event of the application clusters.
//
// SHIPPER_KILL=all tells each story twice: once the answer to the write is lost, once it is read and the reconciler dies
// at its next write instead. By default the answers are lost.
package kill
