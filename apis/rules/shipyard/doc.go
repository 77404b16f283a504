// SPDX-License-Identifier: Apache-2.0

// Package shipyard decides about runs of a Shipyard: whether one is valid, what its next state is, what data a task gets, which runs follow
// from its end, and which of several goes first. All of it is pure: functions of what was observed and the time.
//
// The rules are those of Keptn's shipyard 0.2 (KEP 0006). Tests name its rules K1 to K22; where Keptn's own controller does something else,
// KS1 to KS25, the document wins.
package shipyard
