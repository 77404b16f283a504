// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Retreats reports whether an Application goes back to an earlier state instead of advancing; rels are its Releases, in any
// order. It retreats while
//
//   - its newest Release was deleted and the reconciler has not handled that yet: an abort;
//   - that Release is still there because the earlier one does not serve in its place yet. Conditions report this later than the
//     specs of the targets change: without this, the work in clusters would wait in line with the rest of the namespace;
//   - the newest Release has a position before the one it has achieved, or was moved back to a step it has not achieved since;
//   - after an abort, the Release that had completed returns to its last step. A Release that lacks Pods because a
//     cluster is lost does not retreat;
//   - a rollback with the strategy Immediate goes to the last step of an earlier Release.
//
// A user cannot gain priority by a false claim: the reconciler then really goes back. A Release whose targetStep is after any
// step that it has achieved advances, whatever was deleted or rolled back before.
func Retreats(app *shipper.Application, rels []*shipper.Release) bool {
	newest, leaving := newestOf(app, rels)
	if newest == nil {
		return false
	}
	if aborts(app, newest) || leaving && !position.Achieved(newest).Before(position.Of(newest)) ||
		position.Of(newest).Before(position.Achieved(newest)) || lowered(newest) {
		return true
	}
	_, rollback := stamp.NextContent(app, rels)
	if app.Annotations[shipper.AppRollbackStrategyAnnotation] == string(shipper.RollbackImmediate) &&
		(rollback || !stamp.SameTemplate(&newest.Spec.Environment, &app.Spec.Template)) {
		return true
	}
	executed := shipper.FindCondition(newest.Status.Conditions, shipper.ReleaseStrategyExecuted)
	if !last(newest) || executed != nil && executed.Status == corev1.ConditionTrue {
		return false
	}
	if c := shipper.FindCondition(newest.Status.Conditions, shipper.ReleaseComplete); c != nil && c.Status == corev1.ConditionTrue {
		return executed != nil && aborted(app, c.LastTransitionTime.Time, executed.LastTransitionTime.Time)
	}
	return newest.Annotations[shipper.ReleaseRollbackOfAnnotation] != ""
}

// lowered reports whether targetStep was lowered last, and the step is not achieved. One that it had achieved before needs no more Pods.
func lowered(rel *shipper.Release) bool {
	from, to := stamp.Ends(stamp.Moved(rel))
	executed := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseStrategyExecuted)
	return to.Before(from) && to == position.Of(rel) && (executed == nil || executed.Status != corev1.ConditionTrue)
}

// around is how long after the end of an abort a Release still counts as returning because of it.
const around = time.Minute

// aborted reports whether app, whose newest Release completed at one time, was aborting shortly before a later one, or began to
// abort after it: blocks may delay an abort for long. Every Application has the condition Aborting from its creation, False at
// first.
func aborted(app *shipper.Application, completed, at time.Time) bool {
	c := shipper.FindCondition(app.Status.Conditions, shipper.ApplicationAborting)
	return c != nil && completed.Before(c.LastTransitionTime.Time) && at.Sub(c.LastTransitionTime.Time) <= around
}

// Rests reports whether an Application has nothing left to do: the reconciler has observed its last change, and its newest
// Release is at its targetStep; rels are its Releases, in any order.
func Rests(app *shipper.Application, rels []*shipper.Release) bool {
	newest, _ := newestOf(app, rels)
	return newest != nil && app.Status.ObservedGeneration == app.Generation && newest.Status.ObservedGeneration == newest.Generation &&
		position.Achieved(newest) == position.Of(newest) && shipper.ConditionTrue(newest.Status.Conditions, shipper.ReleaseStrategyExecuted) &&
		!Retreats(app, rels)
}

// newestOf is the newest of app's own Releases that is not being deleted, nil when there is none, and whether a newer one is still there.
func newestOf(app *shipper.Application, rels []*shipper.Release) (newest *shipper.Release, leaving bool) {
	ordered, _ := stamp.SortByGeneration(stamp.Own(app, rels))
	for _, rel := range slices.Backward(ordered) {
		if rel.DeletionTimestamp.IsZero() {
			return rel, leaving
		}
		leaving = true
	}
	return nil, leaving
}

// aborts reports whether a Release newer than newest was deleted and the reconciler has not handled that yet.
func aborts(app *shipper.Application, newest *shipper.Release) bool {
	highest, known, err := stamp.HighestObserved(app)
	generation, broken := stamp.Generation(newest)
	return err == nil && broken == nil && known && generation < highest && !stamp.Restoring(app, newest)
}
