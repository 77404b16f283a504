// SPDX-License-Identifier: Apache-2.0

// Package application makes Releases of what users apply, keeps their history, and takes a template back when its
// Release is deleted.
//
// Three annotations carry what a pass must remember: highestObservedGeneration is the generation of the newest Release
// ever made, observedTemplate the hash of its environment; both are written after the Release, and brought up to date
// by the next pass when a crash came between. A newest Release below highestObservedGeneration means that a newer one
// was deleted: its rollout is aborted, and the template becomes that of the newest Release left, which is brought back
// to its last step when it was complete. But when the template is not the one that was observed, somebody edited it
// since, and that edit is a new Release like any other.
//
// Before a Release is made or deleted, or a template taken back, everything is read once more from the API server and
// planned again: a cache that has not yet seen a new Release must not be taken for an abort.
package application
