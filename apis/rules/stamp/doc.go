// SPDX-License-Identifier: Apache-2.0

// Package stamp says which Release an Application's template makes: its name, its place in history and its labels.
//
// The webhook stamps to warn and to judge, the reconciler stamps to create; both call the same pure functions, so that
// what was announced is what comes.
//
// A Release is named `<application>-<hash>-<iteration>`. The hash is taken over the JSON of the environment; the
// iteration counts Releases that share it, so that going back to an old environment never reuses an old Release. The
// generation orders Releases. Whether two environments are the same is decided by comparing them, never by their hash.
package stamp
