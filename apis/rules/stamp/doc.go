// SPDX-License-Identifier: Apache-2.0

// Package stamp computes the Release of an Application's template: its name, its place in history and its labels.
//
// The webhook stamps to warn and to validate, the reconciler stamps to create; both call the same pure functions, so that the
// Release that the webhook announces is the one that the reconciler creates.
//
// A Release is named `<application>-<hash>-<iteration>`. The hash is taken over the JSON of the environment; the iteration
// counts Releases that share it, so that a rollback to an old environment never reuses an old Release. The generation orders
// Releases. Environments are compared by value, never by their hash.
package stamp
