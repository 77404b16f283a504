// SPDX-License-Identifier: Apache-2.0

// Package waves decides in which wave of a strategy a cluster is, what a position of a rollout asks of it, and which clusters may begin to
// change.
//
// A position is a wave and a step of it. The clusters of the waves before go to the last step, those of this wave to the step, and those of
// the waves after it keep what they have. Without waves all clusters are in wave 0, and a position is a step.
package waves
