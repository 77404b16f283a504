// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Retreats reports whether an Application goes back to what served before, rather than on; rels are its Releases, in any order.
// It does while
//
//   - its newest Release was deleted, and that is not yet dealt with: an abort;
//   - the newest Release is wanted at a step before the one it has achieved;
//   - what had completed is being brought back to its last step after an abort. Who lacks Pods because a cluster is lost goes nowhere;
//   - it goes to the last step of an earlier Release at once: a rollback with the strategy Immediate.
//
// Who only says so gains nothing by it: what is done of such an Application is going back. A Release that is wanted further
// than it has ever been advances, whatever was deleted or rolled back before.
func Retreats(app *shipper.Application, rels []*shipper.Release) bool {
	newest := newestOf(app, rels)
	if newest == nil {
		return false
	}
	if aborts(app, newest) || achieved(newest) > newest.Spec.TargetStep {
		return true
	}
	if app.Annotations[shipper.AppRollbackStrategyAnnotation] == string(shipper.RollbackImmediate) &&
		!stamp.SameEnvironment(&newest.Spec.Environment, &app.Spec.Template) {
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

// around is how long after an abort is over what was before it begins to be brought back.
const around = time.Minute

// aborted reports whether Application app, whose newest Release had completed at a time, had just aborted at a later one, or was about to
// have: blocks may hold an abort up for long. That it does not abort is said of every Application from its beginning.
func aborted(app *shipper.Application, completed, at time.Time) bool {
	c := shipper.FindCondition(app.Status.Conditions, shipper.ApplicationAborting)
	return c != nil && completed.Before(c.LastTransitionTime.Time) && at.Sub(c.LastTransitionTime.Time) <= around
}

// Rests reports whether nothing is asked for of an Application that is not there: its last change has been seen, and its newest Release is
// where it is wanted; rels are its Releases, in any order.
func Rests(app *shipper.Application, rels []*shipper.Release) bool {
	newest := newestOf(app, rels)
	return newest != nil && app.Status.ObservedGeneration == app.Generation && newest.Status.ObservedGeneration == newest.Generation &&
		achieved(newest) == newest.Spec.TargetStep && shipper.ConditionTrue(newest.Status.Conditions, shipper.ReleaseStrategyExecuted) &&
		!Retreats(app, rels)
}

// newestOf is the newest of app's own Releases that stay; nil when there is none.
func newestOf(app *shipper.Application, rels []*shipper.Release) *shipper.Release {
	ordered, _ := stamp.SortByGeneration(stamp.Own(app, rels))
	for _, rel := range slices.Backward(ordered) {
		if rel.DeletionTimestamp.IsZero() {
			return rel
		}
	}
	return nil
}

// aborts reports whether a Release newer than newest was deleted, and nothing has come of it yet.
func aborts(app *shipper.Application, newest *shipper.Release) bool {
	highest, known, err := stamp.HighestObserved(app)
	generation, broken := stamp.Generation(newest)
	return err == nil && broken == nil && known && generation < highest && !stamp.Restoring(app, newest)
}
