// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types of waves in status.strategy of Releases.
const (
	// StrategyContenderAchievedWait is True when the wait of the wave's afterTasks is over. Absent where there is none.
	StrategyContenderAchievedWait = "ContenderAchievedWait"
	// StrategyContenderAchievedBeforeTasks is True when the beforeTasks of the wave have passed. Absent where there are none.
	StrategyContenderAchievedBeforeTasks = "ContenderAchievedBeforeTasks"
)

// Reasons of conditions of waves.
const (
	// AdvancingAwaitingTime means that a wave waits until the time in status.progress.waitEndTime before it begins or is done.
	AdvancingAwaitingTime = "AwaitingTime"
	// AdvancingDoneWaveUnhealthy means that no cluster of the wave begins, because more clusters of the waves before it are not ready than
	// its maxConcurrency; the message names them. The clock of progressDeadline stands still.
	AdvancingDoneWaveUnhealthy = "DoneWaveUnhealthy"
	// AdvancingAwaitingFailedClusters means that all other clusters have the last step, and that those that failed within maxFailures do not
	// have it yet; the message names them. What served there before stays.
	AdvancingAwaitingFailedClusters = "AwaitingFailedClusters"
	// WaitNotOver means that the wait of the wave's beforeTasks or afterTasks is not over; the message says when it is.
	WaitNotOver = "WaitNotOver"
)
