// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types of waves in status.strategy of Releases.
const (
	// StrategyContenderAchievedWait is True when the wait of the wave's afterTasks is over. Absent where there is none.
	StrategyContenderAchievedWait = "ContenderAchievedWait"
)

// Reasons of conditions of waves.
const (
	// AdvancingAwaitingTime means that a wave waits until the time in status.progress.waitEndTime before it is done.
	AdvancingAwaitingTime = "AwaitingTime"
	// WaitNotOver means that the wait of the wave's afterTasks is not over; the message says when it is.
	WaitNotOver = "WaitNotOver"
)
