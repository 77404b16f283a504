// SPDX-License-Identifier: Apache-2.0

// Package progress decides what a rollout does by itself: when it goes on to the next step, when it has failed, and what is done
// about that. It decides by what was observed and the time alone.
package progress

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/check"
	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// grace is the shortest time for which a rollout is observed before its deadline counts: what a reconciler finds when it begins may
// be older than the deadline.
const grace = 30 * time.Second

// Observed is what a decision is made by.
type Observed struct {
	// Release is the newest of its Application, as it is stored.
	Release *shipper.Release
	// Step is how far its step is.
	Step strategy.StepState
	// WritesHeldBy names the RolloutBlocks that keep the step's own changes from being written; empty when none does.
	WritesHeldBy string
	// UpHeldBy, BackHeldBy and AbortHeldBy name those that stop a move up, a move back and an abort; each is empty when none does.
	UpHeldBy, BackHeldBy, AbortHeldBy string
	// Since is when the reconciler began to observe.
	Since time.Time
}

// Decision is what a rollout does by itself.
type Decision struct {
	// Progress is the new status.progress; nil when the strategy does nothing by itself.
	Progress *shipper.ReleaseProgress
	// Conditions are Advancing and, with a progressDeadline, Failed; none when the strategy does nothing by itself.
	Conditions []shipper.Condition
	// CommandNotAwaited is true when the step is achieved and goes on without a user.
	CommandNotAwaited bool
	// Move is the change of the position that is due; nil when none is.
	Move *Move
	// Abort reports whether the Release is to be deleted because it has failed.
	Abort bool
	// Again is how long the decision holds if nothing else changes; 0 when for ever.
	Again time.Duration
	// Failed are all clusters that have failed within maxFailures, sorted; nil if none fails now.
	Failed []string
	// Recovering are those that had failed and were ready again, sorted by name, with their clocks.
	Recovering []shipper.RecoveringCluster
}

// Acts reports whether something other than the status is to be written.
func (d Decision) Acts() bool { return d.Move != nil || d.Abort }

// Move is a change of targetStep, and of targetWave where there are waves.
type Move struct {
	To, ToWave int32
	Why        string
}

// Why Shipper moves a Release.
const (
	// StepDue is the reason of a move up.
	StepDue = "StepDue"
	// RolloutFailed is the reason of a move back.
	RolloutFailed = "RolloutFailed"
	// NewerAborted is the reason of a move of the Release that an abort brings back.
	NewerAborted = "NewerAborted"
	// Aborted is no move, but stands beside them in metrics: the Release failed, and was deleted.
	Aborted = "Aborted"
)

// Decide computes the decision. It acts only on facts that are stored, so that a crash repeats an act and loses none.
func Decide(o Observed, now time.Time) Decision {
	s := o.Release.Spec.Environment.Strategy
	unplaced := o.Release.Spec.Environment.Resources == nil || position.HasWaves(o.Release)
	if !strategy.ByItself(s) || unplaced && !position.Of(o.Release).Exists(s) {
		return Decision{}
	}
	d := decision{Observed: o, strategy: s, now: now, stored: o.Release.Status.Progress}
	d.startOrContinue()
	d.wait()
	d.deadline()
	d.recoveries()
	d.checks()
	advancing := d.advancing()
	d.out.Progress = d.progress
	d.out.Conditions = append(d.out.Conditions, advancing)
	if s.ProgressDeadline != "" || s.HasChecks() {
		d.out.Conditions = append(d.out.Conditions, d.failedCondition())
	}
	return d.out
}

// decision is the state while one is computed.
type decision struct {
	Observed
	strategy *shipper.RolloutStrategy
	now      time.Time
	// stored is the Release's status.progress; nil when it has none.
	stored *shipper.ReleaseProgress
	// progress is the new one.
	progress *shipper.ReleaseProgress
	// isNew is true if the stored figures are of another position.
	isNew bool
	out   Decision
}

// target is the index of the requested step.
func (d *decision) target() int32 { return d.Release.Spec.TargetStep }

// at is the requested position.
func (d *decision) at() position.Position { return position.Of(d.Release) }

// startOrContinue begins new figures when targetStep has changed. It records the time at which contender and incumbent first match the
// step.
func (d *decision) startOrContinue() {
	moved := stamp.Moved(d.Release)
	switch was := d.stored; {
	case strategy.IsCurrent(d.Release, was):
		d.progress = was.DeepCopy()
	default:
		d.isNew = true
		d.progress = &shipper.ReleaseProgress{
			Step: d.target(), Wave: d.at().Wave, Move: moved.Count, MovedBack: stamp.WentBack(d.Release), RequestedTime: upTo(d.now),
		}
		if was != nil && d.progress.MovedBack && moved.Why == RolloutFailed {
			d.progress.Failure = was.Failure
		}
	}
	if d.progress.ConvergedTime == nil && d.Step.Converged {
		d.progress.ConvergedTime = new(upTo(d.now))
	}
	if d.progress.EnteredTime == nil && d.Step.Entered {
		d.progress.EnteredTime = new(upTo(d.now))
	}
	d.progress.Next, d.progress.Approvals, d.progress.Checks = nil, d.Step.Approvals, nil
	d.progress.BeforeApprovals = d.Step.BeforeApprovals
	if d.Step.Checks != nil {
		d.progress.Checks = d.Step.Checks.Checks
	}
	if d.strategy.ProgressDeadline != "" && d.progress.ConvergedTime == nil {
		d.progress.AvailablePods = max(d.progress.AvailablePods, d.Step.Available)
	}
}

// wait records when the wait of a wave is over, and asks for a decision then.
func (d *decision) wait() {
	d.progress.WaitEndTime = strategy.WaitEnd(d.Release, d.progress)
	if d.Step.Beginning {
		d.progress.WaitEndTime = strategy.BeforeWaitEnd(d.Release, d.progress)
	}
	if end := d.progress.WaitEndTime; end != nil && end.After(d.now) {
		d.again(end.Sub(d.now))
	}
}

// advancing is the condition Advancing; it fills in what is done next.
func (d *decision) advancing() shipper.Condition {
	switch {
	case d.progress.Failure != nil && !d.progress.MovedBack:
		return d.actOnFailure()
	case d.progress.MovedBack && !d.Step.Converged:
		return d.condition(corev1.ConditionFalse, shipper.AdvancingGoingBack, d.Step.Awaited)
	case !d.Step.Converged:
		return d.moving()
	case d.progress.MovedBack:
		message := fmt.Sprintf("it retreated to %s: nothing advances until a user raises targetStep", d.at().In(d.strategy))
		if d.progress.Failure != nil {
			message = fmt.Sprintf("it failed and went back to %s: a user gives it up by an abort, or raises targetStep to try it again",
				d.at().In(d.strategy))
		}
		if !d.Step.Achieved && d.Step.Awaited != "" {
			message += "; " + d.Step.Awaited
		}
		return d.condition(corev1.ConditionFalse, shipper.AdvancingHeldAfterGoingBack, message)
	case d.Step.Approving:
		return d.condition(corev1.ConditionFalse, shipper.AdvancingAwaitingApproval, d.Step.Awaited)
	case d.Step.Waiting:
		return d.condition(corev1.ConditionTrue, shipper.AdvancingAwaitingTime, d.Step.Awaited)
	case !d.Step.Achieved && d.Step.Checks != nil && d.Step.Checks.Undecided != nil:
		found := d.Step.Checks.Undecided
		return d.condition(corev1.ConditionFalse, shipper.AdvancingCheckUndecided, found.String()+retry(found))
	case !d.Step.Achieved:
		return d.condition(corev1.ConditionTrue, shipper.AdvancingChecking, d.Step.Awaited)
	case int(d.target()) >= len(d.strategy.Steps)-1 && d.at().Wave >= d.strategy.LastWave(): // resources have no steps
		if d.Step.Lagging != "" {
			return d.condition(corev1.ConditionFalse, shipper.AdvancingAwaitingFailedClusters, d.Step.Lagging)
		}
		return d.condition(corev1.ConditionFalse, shipper.AdvancingComplete, "")
	}
	return d.advance()
}

// moving is the condition while the step does not have what it wants.
func (d *decision) moving() shipper.Condition {
	switch {
	case d.Step.Beginning && d.Step.Approving:
		return d.condition(corev1.ConditionFalse, shipper.AdvancingAwaitingApproval, d.Step.Awaited)
	case d.Step.Beginning && d.Step.Waiting:
		return d.condition(corev1.ConditionTrue, shipper.AdvancingAwaitingTime, d.Step.Awaited)
	case d.Step.Beginning:
		return d.condition(corev1.ConditionTrue, shipper.AdvancingChecking, d.Step.Awaited)
	case d.WritesHeldBy != "":
		return d.condition(corev1.ConditionFalse, shipper.AdvancingHeldByBlock, d.WritesHeldBy)
	case d.onlyBlocked():
		return d.condition(corev1.ConditionFalse, shipper.AdvancingHeldByBlock, d.Step.Awaited)
	case d.Step.DoneWaveUnhealthy:
		return d.condition(corev1.ConditionFalse, shipper.AdvancingDoneWaveUnhealthy, d.Step.Awaited)
	case d.onlyUnreachable():
		return d.condition(corev1.ConditionFalse, shipper.ClustersNotOperational, d.Step.Awaited)
	}
	return d.condition(corev1.ConditionTrue, shipper.AdvancingMoving, d.Step.Awaited)
}

// advance is the condition when the step is achieved and another follows.
func (d *decision) advance() shipper.Condition {
	next, _ := d.at().Next(d.strategy)
	after := d.strategy.StepAt(d.at().Wave, d.target()).After
	if d.strategy.IsAutomatic() && after == "" {
		after = "0s"
	}
	if after == "" {
		return d.condition(corev1.ConditionFalse, shipper.AdvancingAwaitingCommand, awaitsCommand(d.strategy, d.at(), next))
	}
	due := d.progress.ConvergedTime.Add(after.Value())
	d.progress.Next = &shipper.ReleaseNextStep{Step: next.Step, Wave: next.Wave, Time: metav1.NewTime(due)}
	wait := due.Sub(d.now)
	if after.Value() == 0 {
		wait = 0
	}
	switch {
	case d.Release.Spec.Hold != "":
		return d.condition(corev1.ConditionFalse, shipper.AdvancingHeldByUser, "held: "+d.Release.Spec.Hold)
	case d.UpHeldBy != "":
		d.out.CommandNotAwaited = true
		return d.condition(corev1.ConditionFalse, shipper.AdvancingHeldByBlock, d.UpHeldBy)
	case wait > 0:
		d.out.Again = wait
	case d.stored != nil && d.stored.ConvergedTime != nil && Achieved(d.Release, d.at()):
		d.out.Move = &Move{To: next.Step, ToWave: next.Wave, Why: StepDue}
	}
	d.out.CommandNotAwaited = true
	if len(d.strategy.Steps) == 0 {
		return d.condition(corev1.ConditionTrue, shipper.AdvancingSoaking,
			fmt.Sprintf("goes on to %s: %s is done", next.In(d.strategy), d.at().In(d.strategy)))
	}
	wave := ""
	if len(d.strategy.Waves) > 0 {
		wave = " of wave " + position.WaveName(d.strategy, next.Wave)
	}
	return d.condition(corev1.ConditionTrue, shipper.AdvancingSoaking, fmt.Sprintf(
		"advances to step %d (%s)%s %s after step %d got its capacity and traffic", next.Step, d.strategy.Steps[next.Step].Name, wave,
		after, d.target()))
}

// awaitsCommand says what a user does to go on.
func awaitsCommand(s *shipper.RolloutStrategy, at, next position.Position) string {
	if next.Wave == at.Wave {
		return fmt.Sprintf("waits until targetStep is raised to %d", next.Step)
	}
	return fmt.Sprintf("wave %s is done: waits until targetWave is raised to %d (%s), with targetStep 0", position.WaveName(s, at.Wave),
		next.Wave, position.WaveName(s, next.Wave))
}

// Achieved reports whether the stored status of a Release says that it has achieved a position since it was last moved, and still has all
// that the position wants. Admission opens gates and waves by it, and the reconciler goes on by it.
func Achieved(rel *shipper.Release, at position.Position) bool {
	p := rel.Status.Progress
	return position.Achieved(rel) == at && shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseStrategyExecuted) &&
		position.Of(rel) == at && rel.Status.ObservedGeneration == rel.Generation &&
		p != nil && p.Step == at.Step && p.Wave == at.Wave && approved(rel, p.Approvals)
}

// approved judges the approvals in the status themselves, so that an Approval is never replaced by a condition that is derived from it.
func approved(rel *shipper.Release, is *shipper.ReleaseApprovals) bool {
	at, s, p := position.Of(rel), rel.Spec.Environment.Strategy, rel.Status.Progress
	if tasks := s.BeforeTasksAt(at.Wave, at.Step); tasks != nil && !p.MovedBack && !p.BeforeApprovals.Enough(tasks.Approvals) {
		return false
	}
	step := s.StepAt(at.Wave, at.Step)
	return step == nil || is.Enough(step.RequiredApprovals())
}

// retry is what a user does about a check that is undecided.
func retry(f *check.Finding) string {
	if f.Run == 0 {
		return "" // it has not begun, and begins when what is missing is there
	}
	return "; shipperctl rollout retry-checks makes the checks again"
}

func (d *decision) condition(status corev1.ConditionStatus, reason, message string) shipper.Condition {
	return shipper.Condition{Type: shipper.ReleaseAdvancing, Status: status, Reason: reason, Message: message}
}

// upTo is t in whole seconds, as objects store times, and not before t: waits get no shorter.
func upTo(t time.Time) metav1.Time {
	return metav1.NewTime(t.Add(time.Second - time.Nanosecond).Truncate(time.Second))
}
