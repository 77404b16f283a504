// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// beforeTasks are the tasks that keep the clusters of the contender's wave from changing, and how far they are. The zero value holds
// nothing.
type beforeTasks struct {
	// tasks are nil where there are none.
	tasks *shipper.WaveTasks
	// stages are one for each kind of task.
	stages []stage
	// approvals are nil where the tasks ask for none.
	approvals *shipper.ReleaseApprovals
	// entered is true if the stored figures say that all had passed: the wave may have begun. Conditions and the wait do not matter then. An
	// approval that is withdrawn keeps further clusters from beginning, and takes none back.
	entered bool
}

// isOpen reports whether a task has not passed.
func (b beforeTasks) isOpen() bool {
	return slices.ContainsFunc(b.stages, func(s stage) bool { return !s.achieved })
}

// isAhead reports whether the wave has never begun since the Release was moved to it: its clusters are as those of later waves.
func (b beforeTasks) isAhead() bool { return b.isOpen() && !b.entered }

// tasksBefore are the beforeTasks that hold a Release at its position; nil if there are none. Nothing holds a move back, an immediate
// rollback and what is complete.
func tasksBefore(rel *shipper.Release) *shipper.WaveTasks {
	at := position.Of(rel)
	tasks := rel.Spec.Environment.Strategy.BeforeTasksAt(at.Wave, at.Step)
	if tasks == nil || Complete(rel) || stamp.WentBack(rel) || IsImmediateRollback(rel) {
		return nil
	}
	return tasks
}

// IsCurrent reports whether figures are those of a Release's position, since it was moved there; p may be nil.
func IsCurrent(rel *shipper.Release, p *shipper.ReleaseProgress) bool {
	at := position.Of(rel)
	return p != nil && p.Step == at.Step && p.Wave == at.Wave && p.Move == stamp.Moved(rel).Count
}

// BeforeWaitEnd is when the wait of the beforeTasks that hold a Release is over, by figures; nil where there is none, when they have
// passed, and where the figures are of another position or of an earlier move.
func BeforeWaitEnd(rel *shipper.Release, p *shipper.ReleaseProgress) *metav1.Time {
	tasks := tasksBefore(rel)
	if tasks == nil || tasks.Wait == "" || !IsCurrent(rel, p) || p.EnteredTime != nil {
		return nil
	}
	return new(metav1.NewTime(p.RequestedTime.Add(tasks.Wait.Value())))
}

// judgeBefore judges the beforeTasks of the contender's wave.
func (r *rollout) judgeBefore() beforeTasks {
	rel := r.contender().Release
	b := beforeTasks{tasks: tasksBefore(rel)}
	if b.tasks == nil { // also while a newer Release is aborted: a return that is refused must not open the wave
		return beforeTasks{}
	}
	p := rel.Status.Progress
	b.entered = IsCurrent(rel, p) && p.EnteredTime != nil
	wave := position.WaveName(rel.Spec.Environment.Strategy, position.Of(rel).Wave)
	if len(b.tasks.Conditions) > 0 {
		closed := closedGates(rel, b.tasks.Conditions)
		b.add(stage{
			waiting:  func(state *shipper.ReleaseStrategyState) *shipper.StrategyState { return &state.WaitingForReadiness },
			achieved: b.entered || len(closed) == 0, reason: shipper.GatesNotReady,
			message: fmt.Sprintf("wave %s begins when release %q has conditions that others set in its status: %s", wave, rel.Name,
				strings.Join(closed, "; ")),
		})
	}
	if b.tasks.Wait != "" {
		end, message := BeforeWaitEnd(rel, p), fmt.Sprintf("wave %s waits %s before it begins", wave, b.tasks.Wait)
		if end != nil {
			message += ", until " + end.UTC().Format(time.RFC3339)
		}
		b.add(stage{
			waiting:  func(state *shipper.ReleaseStrategyState) *shipper.StrategyState { return &state.WaitingForTime },
			achieved: b.entered || end != nil && !r.now.Before(end), reason: shipper.WaitNotOver, message: message,
		})
	}
	if b.tasks.Approvals > 0 {
		asked := askedApprovals{
			task: shipper.ApprovalBefore, required: b.tasks.Approvals, accounts: b.tasks.AllowServiceAccounts,
			field: shipper.BeforeTasksAllowServiceAccounts, what: "the beginning of wave " + wave,
		}
		a, rejection := asked.count(rel, r.Approvals)
		b.approvals = &a
		b.add(asked.stage(rel, a, rejection))
	}
	return b
}

// add adds the stage of one kind of task.
func (b *beforeTasks) add(s stage) {
	s.condition = shipper.StrategyContenderAchievedBeforeTasks
	b.stages = append(b.stages, s)
}

// state says, for each kind of task, that nothing waits for it.
func (b beforeTasks) state(out *shipper.ReleaseStrategyState) {
	for _, s := range b.stages {
		*s.waiting(out) = shipper.StrategyStateFalse
	}
}

// isAhead reports whether the wave of a cluster has not begun.
func (w *byWave) isAhead(p *part) bool {
	return p.wave > w.at.Wave || p.wave == w.at.Wave && w.before.isAhead()
}

// isHeldBefore reports whether an approval that was withdrawn keeps a cluster of a wave that has begun from beginning.
func (w *byWave) isHeldBefore(p *part) bool {
	return w.before.isOpen() && w.before.entered && p.wave == w.at.Wave && (p.state != waves.Done || !w.newest().isBegun(p.cluster))
}
