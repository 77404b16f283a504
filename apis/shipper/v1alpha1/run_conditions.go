// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types of SequenceRuns.
const (
	// RunFinished is True when the run has ended, with the reason; until then its reason is what the run does.
	RunFinished = "Finished"
	// RunHasFailed is True when it ended with the result fail.
	RunHasFailed = "Failed"
	// RunBlocked is True while a RolloutBlock stops the task under way.
	RunBlocked = "Blocked"
)

// Reasons of the condition Finished of SequenceRuns.
const (
	// RunUnresolved means that it cannot be decided yet what the run does.
	RunUnresolved = "Unresolved"
	// RunRefused means that the run was not started: what it requests is not possible, or not any more.
	RunRefused = "Refused"
	// RunQueued means that another run of the queue, or of the stage, goes first.
	RunQueued = "Queued"
	// RunRunning means that its tasks are under way.
	RunRunning = "Running"
	// RunPaused means that hold is set.
	RunPaused = "Paused"
	// RunPassed means that all tasks passed.
	RunPassed = "Passed"
	// RunWarned means that one had a warning.
	RunWarned = "Warning"
	// RunFailed means that one failed.
	RunFailed = "Failed"
	// RunTimedOut means that the run took longer than its timeout.
	RunTimedOut = "TimedOut"
	// RunAborted means that a user set abort.
	RunAborted = "Aborted"
	// RunSuperseded means that a newer run of the sequence replaced it while it was queued.
	RunSuperseded = "Superseded"
	// RunPreempted means that a run with whenBusy Preempt ended it.
	RunPreempted = "Preempted"
)

// ApprovalCounted is the condition of Approvals of runs: True when it counts for the task; False with the reason NotCounted and a message
// that says why not.
const ApprovalCounted = "Counted"

// ApprovalNotCounted is the reason of the condition Counted when it is False.
const ApprovalNotCounted = "NotCounted"
