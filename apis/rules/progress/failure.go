// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"cmp"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/strategy"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// maxMessage bounds, in characters, the message of a failure.
const maxMessage = 1024

// deadline runs the clock of progressDeadline, and notes that it has run out. Checks have ends of their own.
func (d *decision) deadline() {
	p, allowed := d.progress, d.strategy.ProgressDeadline.Value()
	switch {
	case allowed == 0 || p.ConvergedTime != nil || p.MovedBack:
		p.DeadlineTime, p.DeadlineRemaining = nil, ""
		if d.Step.Converged && !p.MovedBack && p.Failure != nil && p.Failure.Reason == shipper.ProgressDeadlineExceeded {
			p.Failure = nil
		}
		return
	case p.Failure != nil:
		return
	case d.WritesHeldBy != "", d.Release.Spec.Hold != "", d.Step.DoneWaveUnhealthy, d.Step.Beginning, d.onlyUnreachable(), d.onlyBlocked(),
		d.onlyRecovering():
		d.stopClock(allowed)
		return
	case p.DeadlineTime == nil:
		if left, err := time.ParseDuration(p.DeadlineRemaining); err == nil && left < allowed {
			allowed = left
		}
		p.DeadlineTime, p.DeadlineRemaining = new(upTo(d.now.Add(allowed))), ""
	case d.stored != nil && p.AvailablePods > d.stored.AvailablePods:
		p.DeadlineTime = new(upTo(d.now.Add(allowed)))
	}
	if !d.isOver(p.DeadlineTime) {
		return
	}
	if len(d.Step.Late) > 0 && d.Step.OverBudget == "" {
		d.out.Failed = slices.Sorted(slices.Values(slices.Concat(d.Step.Failed, d.Step.Late))) // the others start their time again
		p.DeadlineTime = new(upTo(d.now.Add(d.strategy.ProgressDeadline.Value())))
		d.again(p.DeadlineTime.Sub(d.now))
		return
	}
	d.overdue()
}

// stopClock keeps what is left of the time that is allowed.
func (d *decision) stopClock(allowed time.Duration) {
	p := d.progress
	left := allowed
	switch {
	case p.DeadlineTime != nil:
		left = max(0, p.DeadlineTime.Sub(d.now))
	case p.DeadlineRemaining != "":
		return
	}
	p.DeadlineTime, p.DeadlineRemaining = nil, left.Round(time.Second).String()
}

// onlyUnreachable reports whether all clusters that are awaited cannot be reached. An unknown state is no failure.
func (d *decision) onlyUnreachable() bool {
	return len(d.Step.Lacking) > 0 && !slices.ContainsFunc(d.Step.Lacking, func(l strategy.Lack) bool { return l.Reachable })
}

// onlyBlocked reports whether all clusters that are awaited and can be reached are held by RolloutBlocks.
func (d *decision) onlyBlocked() bool {
	return slices.ContainsFunc(d.Step.Lacking, func(l strategy.Lack) bool { return l.Blocked }) &&
		!slices.ContainsFunc(d.Step.Lacking, mayMove)
}

// mayMove reports whether a cluster that is awaited could do what the step wants.
func mayMove(l strategy.Lack) bool { return l.Reachable && !l.Blocked }

// checks notes that a check has failed. A user who has the checks made again ends that, unless the rollout went back.
func (d *decision) checks() {
	p, state := d.progress, d.Step.Checks
	if p.MovedBack {
		return
	}
	if f := p.Failure; f != nil && f.Reason == shipper.CheckFailed && state != nil && (state.Failed == nil || state.Failed.Run != f.Run) {
		p.Failure = nil
	}
	if p.Failure != nil || state == nil || state.Failed == nil || d.Step.Achieved {
		return
	}
	found := state.Failed
	d.fail(&shipper.ReleaseFailure{
		Reason: shipper.CheckFailed, Check: found.Check, Cluster: found.Cluster, Run: found.Run, Message: found.Message,
	})
}

// overdue writes down that the step does not have what it wants, and where.
func (d *decision) overdue() {
	f := &shipper.ReleaseFailure{Reason: shipper.ProgressDeadlineExceeded, Message: d.Step.Awaited}
	if i := slices.IndexFunc(d.Step.Lacking, isTimed); i >= 0 {
		f.Cluster, f.Message = d.Step.Lacking[i].Cluster, cmp.Or(d.Step.Lacking[i].Message, d.Step.Awaited)
	}
	if over := d.Step.OverBudget; over != "" {
		f.Message = beyond(f.Message, over)
	}
	d.fail(f)
}

// beyond adds to a message which maxFailures is exceeded.
func beyond(message, over string) string {
	return shortened(message, maxMessage-utf8.RuneCountInString(over)-2) + "; " + over
}

// fail writes down that the rollout has failed, and what is done about it.
func (d *decision) fail(f *shipper.ReleaseFailure) {
	f.Step, f.Wave, f.Time, f.Action = d.target(), d.at().Wave, upTo(d.now), cmp.Or(d.strategy.OnFailure, shipper.OnFailureHold)
	f.Message = shortened(f.Message, maxMessage)
	if _, before := Before(d.strategy, d.at()); !d.Step.Incumbent || f.Action == shipper.OnFailureRetreat && !before {
		f.Action = shipper.OnFailureHold
	}
	d.progress.Failure, d.progress.DeadlineTime = f, nil
}

// shortened is a text of at most so many characters.
func shortened(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// Before is the last position before one in which the contender has no traffic in the clusters of the wave: a step of the wave, or the end
// of the wave before. Waves that are done stay done.
func Before(s *shipper.RolloutStrategy, at position.Position) (before position.Position, is bool) {
	for i := min(at.Step, int32(len(s.Steps))) - 1; i >= 0; i-- {
		if s.Steps[i].Traffic.Contender == 0 {
			return position.Position{Wave: at.Wave, Step: i}, true
		}
	}
	if at.Wave > 0 {
		return position.Position{Wave: at.Wave - 1, Step: s.LastStep()}, true
	}
	return position.Position{}, false
}

// actOnFailure is the condition Advancing of a rollout that has failed and has not gone back. Nothing is done before the failure is stored.
func (d *decision) actOnFailure() shipper.Condition {
	f := d.progress.Failure
	recorded := d.stored != nil && d.stored.Failure != nil && d.stored.Step == d.target() && d.stored.Wave == d.at().Wave &&
		d.stored.Move == d.progress.Move
	message, held := d.failureMessage(), ""
	switch f.Action {
	case shipper.OnFailureRetreat:
		before, _ := Before(d.strategy, d.at())
		if held = d.stopped(d.BackHeldBy); held == "" {
			message += "; retreats to " + before.In(d.strategy)
			if recorded {
				d.out.Move = &Move{To: before.Step, ToWave: before.Wave, Why: RolloutFailed}
			}
		}
	case shipper.OnFailureAbort:
		if held = d.stopped(d.AbortHeldBy); held == "" {
			message += "; is aborted"
			d.out.Abort = recorded
		}
	}
	if held != "" {
		message += fmt.Sprintf("; onFailure is %s, and that is held: %s", f.Action, held)
	}
	return d.condition(corev1.ConditionFalse, shipper.AdvancingFailed, message)
}

// stopped says what keeps Shipper from acting on a failure: the user's hold, or blocks.
func (d *decision) stopped(blocks string) string {
	if d.Release.Spec.Hold != "" {
		return d.Release.Spec.Hold
	}
	return blocks
}

// failedCondition is the condition Failed.
func (d *decision) failedCondition() shipper.Condition {
	c := shipper.Condition{Type: shipper.ReleaseFailed, Status: corev1.ConditionFalse}
	if f := d.progress.Failure; f != nil {
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, f.Reason, d.failureMessage()
		return c
	}
	failed := d.Step.Failed
	if d.out.Failed != nil {
		failed = d.out.Failed
	}
	if len(failed) > 0 {
		c.Message = "failed within maxFailures: " + waves.Counted(failed)
	}
	return c
}

// failureMessage describes a failure to users.
func (d *decision) failureMessage() string {
	f := d.progress.Failure
	name := ""
	if int(f.Step) < len(d.strategy.Steps) && d.strategy.Steps[f.Step].Name != "" {
		name = fmt.Sprintf(" (%s)", d.strategy.Steps[f.Step].Name)
	}
	if len(d.strategy.Waves) > 0 {
		name += " of wave " + position.WaveName(d.strategy, f.Wave)
	}
	step := fmt.Sprintf("step %d%s", f.Step, name)
	if len(d.strategy.Steps) == 0 && len(d.strategy.Waves) > 0 {
		step = "wave " + position.WaveName(d.strategy, f.Wave)
	}
	where := ""
	if f.Cluster != "" {
		where = " in " + f.Cluster
	}
	text := fmt.Sprintf("%s was not ready within %s%s: %s", step, d.strategy.ProgressDeadline, where, f.Message)
	if f.Reason == shipper.CheckFailed {
		text = fmt.Sprintf("%s failed check %s%s: %s", step, f.Check, where, f.Message)
	}
	if wants := cmp.Or(d.strategy.OnFailure, shipper.OnFailureHold); f.Action == shipper.OnFailureHold && wants != f.Action {
		text += fmt.Sprintf("; onFailure is %s, but there is nothing to go back to", wants)
	}
	return text
}

// again asks for another decision after a time, if that is sooner.
func (d *decision) again(wait time.Duration) {
	if d.out.Again == 0 || wait < d.out.Again {
		d.out.Again = wait
	}
}
