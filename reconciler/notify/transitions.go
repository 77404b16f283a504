// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Event is one change of a Release.
type Event struct {
	Word shipper.NotificationEvent
	// ID is the same whenever the same change is derived again.
	ID string
	// Time of the change. Zero where the Release does not show it: then it is the time at which the change was seen.
	Time                            time.Time
	Namespace, Application, Release string
	Step                            int32
	StepName, Reason, Message, User string
}

// Transitions are the changes of a Release from was to is, in the order of their times. With was nil, they are those that is shows
// by itself. The last change of each kind is known; a change that was undone before it was seen is not.
func Transitions(was, is *shipper.Release) []Event {
	d := derivation{was: was, is: is}
	if was == nil {
		d.was = &shipper.Release{}
		created := is.CreationTimestamp.Time
		d.add(shipper.NotificationStarted, stepAt(0, created), created, 0, "", "")
	}
	d.moves()
	d.steps()
	d.waiting()
	d.conditions()
	if is.DeletionTimestamp != nil && d.was.DeletionTimestamp == nil && underWay(is) {
		const message = "the Release was deleted before it was complete"
		d.add(shipper.NotificationAborted, once, is.DeletionTimestamp.Time, is.Spec.TargetStep, "", message)
	}
	if outcome(is) == shipper.ReleaseRolledBack && was != nil && outcome(was) != shipper.ReleaseRolledBack {
		d.add(shipper.NotificationRolledBack, once, time.Time{}, is.Spec.TargetStep, "", "a rollback has replaced the Release")
	}
	slices.SortStableFunc(d.out, func(a, b Event) int { return a.Time.Compare(b.Time) })
	return d.out
}

// derivation is the state while changes are derived.
type derivation struct {
	was, is *shipper.Release
	out     []Event
}

// moves adds that the position was lowered.
func (d *derivation) moves() {
	before, moved := stamp.Moved(d.was), stamp.Moved(d.is)
	from, to := stamp.Ends(moved)
	if moved.Count == before.Count || !to.Before(from) {
		return
	}
	s := d.is.Spec.Environment.Strategy
	message := fmt.Sprintf("went back from %s to %s", from.In(s), to.In(s))
	if p := d.is.Status.Progress; p != nil && p.Failure != nil && moved.Why != "" {
		message += ": " + p.Failure.Message
	}
	d.addRequested(shipper.NotificationWentBack, "", moved.Time.Time, moved.To, moved.Why, message).User = moved.By
}

// steps adds that a step was achieved. The condition StrategyExecuted has the time. It turns also when Pods are lost and come back:
// the number of the request makes the ID, so that this is the same event.
func (d *derivation) steps() {
	if executed := achievement(d.is); executed != nil {
		before, now := d.was.Status.AchievedStep, d.is.Status.AchievedStep
		again := before != nil && *before == *now && shipper.ConditionTrue(d.was.Status.Conditions, shipper.ReleaseStrategyExecuted)
		if !again {
			d.addRequested(shipper.NotificationStepAchieved, "", executed.LastTransitionTime.Time, now.Step, "", "")
		}
	}
}

// achievement returns the condition StrategyExecuted of a Release that has achieved targetStep; nil of others.
func achievement(rel *shipper.Release) *shipper.Condition {
	c, step := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseStrategyExecuted), rel.Status.AchievedStep
	if c == nil || c.Status != corev1.ConditionTrue || step == nil || position.Achieved(rel) != position.Of(rel) {
		return nil
	}
	return c
}

// waiting adds that the Release waits until a user raises targetStep or approves the step. Each reason has an ID of its own: a user may
// have to raise targetStep after others have approved.
func (d *derivation) waiting() {
	is := waitOf(d.is)
	if is == nil {
		return
	}
	was := waitOf(d.was)
	if was != nil && was.reason == is.reason && was.step == is.step && was.move == is.move && was.before == is.before {
		return
	}
	kind := ""
	if is.reason != shipper.AdvancingAwaitingCommand {
		kind = is.reason
	}
	if is.before {
		kind += " before"
	}
	d.addRequested(shipper.NotificationWaiting, kind, is.since, is.step, is.reason, is.message)
}

// wait is the state of a Release that needs a user.
type wait struct {
	step            int32
	move            int64
	reason, message string
	since           time.Time
	// before is true while a wave waits to begin: its step may need approvals after that.
	before bool
}

// waits are the reasons of the condition Advancing for which a user has to act.
var waits = []string{shipper.AdvancingAwaitingCommand, shipper.AdvancingAwaitingApproval, shipper.AdvancingCheckUndecided}

// waitOf returns the wait of a Release, or nil. The condition Advancing shows it. Releases whose strategy does nothing by itself have none.
func waitOf(rel *shipper.Release) *wait {
	if !underWay(rel) {
		return nil
	}
	w := &wait{step: rel.Spec.TargetStep, move: stamp.Moved(rel).Count}
	executed := achievement(rel)
	advancing := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseAdvancing)
	switch s, p := rel.Status.Strategy, rel.Status.Progress; {
	case advancing == nil && executed != nil && s != nil && s.State.WaitingForCommand == shipper.StrategyStateTrue:
		w.reason, w.message = shipper.AdvancingAwaitingCommand, fmt.Sprintf("waits until targetStep is raised to %d", w.step+1)
	case advancing == nil || p == nil || p.Step != w.step || p.Move != w.move: // the condition may be of an earlier request
		return nil
	case slices.Contains(waits, advancing.Reason):
		w.reason, w.message, w.since = advancing.Reason, advancing.Message, advancing.LastTransitionTime.Time
		w.before = p.AwaitsBeginning()
		if p.ConvergedTime != nil && p.ConvergedTime.After(w.since) { // Advancing may have been False before, for another reason
			w.since = p.ConvergedTime.Time
		}
	default:
		return nil
	}
	if executed != nil && executed.LastTransitionTime.After(w.since) {
		w.since = executed.LastTransitionTime.Time
	}
	return w
}

// conditions adds what conditions report.
func (d *derivation) conditions() {
	if c := d.turned(shipper.ReleaseFailed, corev1.ConditionTrue); c != nil {
		step := d.is.Spec.TargetStep
		if p := d.is.Status.Progress; p != nil && p.Failure != nil {
			step = p.Failure.Step
		}
		at := c.LastTransitionTime.Time
		d.add(shipper.NotificationFailed, stepAt(step, at), at, step, c.Reason, c.Message)
	}
	if c := d.turned(shipper.ReleaseComplete, corev1.ConditionTrue); c != nil {
		at, last := c.LastTransitionTime.Time, d.is.Spec.Environment.Strategy.LastStep()
		d.add(shipper.NotificationCompleted, stepAt(last, at), at, last, c.Reason, "")
	}
	if !underWay(d.is) {
		return
	}
	if c := d.turned(shipper.ReleaseBlocked, corev1.ConditionTrue); c != nil {
		d.addBlock(shipper.NotificationBlocked, c)
	}
	if c := d.turned(shipper.ReleaseBlocked, corev1.ConditionFalse); c != nil && shipper.ConditionTrue(
		d.was.Status.Conditions, shipper.ReleaseBlocked) {
		d.addBlock(shipper.NotificationUnblocked, c)
	}
}

// turned is the condition of a type if it has a status that it did not have before.
func (d *derivation) turned(conditionType string, status corev1.ConditionStatus) *shipper.Condition {
	c := shipper.FindCondition(d.is.Status.Conditions, conditionType)
	if c == nil || c.Status != status {
		return nil
	}
	if before := shipper.FindCondition(d.was.Status.Conditions, conditionType); before != nil && before.Status == status {
		return nil
	}
	return c
}

// once is the discriminator of events that a Release has once.
const once = ""

// stepAt is the discriminator of an event that a Release may have several times, at different steps or times.
func stepAt(step int32, at time.Time) string { return fmt.Sprintf("%d at %d", step, at.Unix()) }

// add appends an event. discriminator distinguishes it from other events of the same Release and word.
func (d *derivation) add(
	word shipper.NotificationEvent, discriminator string, at time.Time, step int32, reason, message string,
) *Event {
	e := Event{
		Word: word, ID: id(d.is.UID, word, discriminator), Time: at,
		Namespace: d.is.Namespace, Application: d.is.Labels[shipper.AppLabel], Release: d.is.Name,
		Step: step, Reason: reason, Message: message, User: d.is.Annotations[shipper.ReleaseRequestedByAnnotation],
	}
	if s := d.is.Spec.Environment.Strategy; s != nil && step >= 0 && int(step) < len(s.Steps) {
		e.StepName = s.Steps[step].Name
	}
	d.out = append(d.out, e)
	return &d.out[len(d.out)-1]
}

// addRequested appends an event that belongs to one request of a step, and is not older than the request. The ID has the request's
// number: two requests may be of the same second. kind distinguishes events of the same word and request; it may be empty.
func (d *derivation) addRequested(
	word shipper.NotificationEvent, kind string, at time.Time, step int32, reason, message string,
) *Event {
	moved := stamp.Moved(d.is)
	if moved.Time.After(at) {
		at = moved.Time.Time
	}
	discriminator := fmt.Sprintf("%d of request %d", step, moved.Count)
	if kind != "" {
		discriminator += " " + kind
	}
	return d.add(word, discriminator, at, step, reason, message)
}

// addBlock appends an event of the condition Blocked. The ID has no step: targetStep may differ when the event is derived again.
func (d *derivation) addBlock(word shipper.NotificationEvent, c *shipper.Condition) {
	at := c.LastTransitionTime
	d.add(word, at.UTC().String(), at.Time, d.is.Spec.TargetStep, c.Reason, c.Message)
}

// id is the same for the same change of the same object, in every process.
func id(of types.UID, word shipper.NotificationEvent, discriminator string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s", of, word, discriminator))
	return hex.EncodeToString(sum[:16])
}

func outcome(rel *shipper.Release) shipper.ReleaseOutcome {
	if rel.Status.Summary == nil {
		return ""
	}
	return rel.Status.Summary.Outcome
}

// underWay reports whether a Release is the newest and not complete.
func underWay(rel *shipper.Release) bool {
	switch outcome(rel) {
	case "", shipper.ReleaseInProgress, shipper.ReleaseHasFailed:
		return true
	}
	return false
}
