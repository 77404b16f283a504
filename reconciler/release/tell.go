// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/release/blocks"
	"shipper.dev/shipper/reconciler/release/diary"
)

// tell persists the status of every Release and then tells the events of the pass. A Release whose status cannot be
// written does not keep the others from theirs. When one is held back, wait is how long.
func (r *Reconciler) tell(ctx context.Context, s *scope, p plan, d done, now metav1.Time) (wait time.Duration, errs []error) {
	persist := func(rel *shipper.Release, is shipper.ReleaseStatus) {
		held, err := r.persist(ctx, rel, is, d.retried() || !underWay(rel.Status, is), now)
		wait, errs = report.Sooner(wait, held), append(errs, err)
	}
	for i := range s.history.Live {
		rel := s.history.Live[i].Release
		report.Emit(r.recorder, rel, written(d, rel, p.verdict))
		persist(rel, status(s, p, d, i, now))
	}
	for _, rel := range s.history.Broken {
		persist(rel, brokenStatus(rel, now))
	}
	return wait, errs
}

// written are the events of what was written for a Release, and that it was in spite of blocks. What targets are asked for is
// the doing of the newest Release, whosever they are.
func written(d done, rel *shipper.Release, v block.Verdict) []report.Event {
	out := d.events[rel.Name]
	if names := blocks.Overridden(v); names != "" && (len(out) > 0 || d.asked && d.newest == rel.Name) {
		out = append(out, diary.Override(names))
	}
	return out
}

// persist writes a status that differs from what it was, unless the Release was changed since it was read, and then
// tells what is new in it. What is under way for less than a second is not worth a write, unless it is urgent: held is how long that
// waits yet.
func (r *Reconciler) persist(
	ctx context.Context, rel *shipper.Release, is shipper.ReleaseStatus, urgent bool, now metav1.Time,
) (held time.Duration, err error) {
	next := rel.DeepCopy()
	next.Status = is
	if held = r.pace.HoldUnless(urgent, rel, next, now.Time); held > 0 || equality.Semantic.DeepEqual(rel.Status, is) {
		return held, nil
	}
	err = r.client.Status().Patch(ctx, next, onlyIfUnchanged(rel))
	if r.known.Wrote(next, err); err != nil {
		return 0, fmt.Errorf("writing the status of release %s/%s: %w", rel.Namespace, rel.Name, err)
	}
	r.pace.Wrote(next, now.Time)
	report.Emit(r.recorder, rel, changes(rel, is))
	return 0, nil
}

// underWay tells whether all that is new in a status is how far a step is that was awaited before and still is: nobody waits for
// that, and for what is awaited it says, each in its turn, that it is.
func underWay(was, is shipper.ReleaseStatus) bool {
	if was.ObservedGeneration != is.ObservedGeneration || !equality.Semantic.DeepEqual(was.AchievedStep, is.AchievedStep) ||
		!awaited(was) || !awaited(is) || commanded(was) != commanded(is) {
		return false
	}
	for _, c := range is.Conditions {
		before := shipper.FindCondition(was.Conditions, c.Type)
		switch {
		case before == nil:
			if c.Type != shipper.ReleaseHealthy {
				return false
			}
		case before.Status != c.Status || before.Reason != c.Reason,
			before.Message != c.Message && c.Type != shipper.ReleaseStrategyExecuted && c.Type != shipper.ReleaseHealthy:
			return false
		}
	}
	return true
}

// awaited tells whether a status says that its step is under way.
func awaited(s shipper.ReleaseStatus) bool {
	c := shipper.FindCondition(s.Conditions, shipper.ReleaseStrategyExecuted)
	return c != nil && c.Status == corev1.ConditionFalse && c.Reason == shipper.StrategyInProgress
}

// commanded is what a status says that people and clients wait for, or are waited for in.
func commanded(s shipper.ReleaseStatus) (of struct{ command, readiness bool }) {
	if s.Strategy != nil {
		of.command = s.Strategy.State.WaitingForCommand == shipper.StrategyStateTrue
		of.readiness = s.Strategy.State.WaitingForReadiness == shipper.StrategyStateTrue
	}
	return of
}
