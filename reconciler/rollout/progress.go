// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/progress"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/events"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// account is Shipper's user name in the notes of moves; the webhook writes the one of the request.
var account = serviceaccount.MakeUsername(shipper.SystemNamespace, shipper.ManagementServiceAccount)

// advance moves or aborts the newest Release, unless it was changed since it was read.
func (r *pass) advance(ctx context.Context, s *scope, d progress.Decision) error {
	rel := s.history.Newest()
	if d.Abort {
		return r.abortFailed(ctx, s, rel)
	}
	is := rel.DeepCopy()
	to := position.Position{Wave: d.Move.ToWave, Step: d.Move.To}
	to.Set(is)
	if is.Annotations == nil {
		is.Annotations = map[string]string{}
	}
	is.Annotations[shipper.ReleaseMovedAnnotation] = stamp.Move(rel, is, account, d.Move.Why, r.now)
	err := r.client.Patch(ctx, is, onlyIfUnchanged(rel))
	if r.wrote(is); err != nil {
		return fmt.Errorf("moving release %s/%s to %s: %w", rel.Namespace, rel.Name, to.In(rel.Spec.Environment.Strategy), err)
	}
	report.Emit(r.recorder, rel, []report.Event{movedByItself(rel, d.Move)})
	return nil
}

// abortFailed deletes a Release that has failed: the template becomes that of the Release before, as when a user deletes it. That the
// template failed is noted first, for nothing says so afterwards.
func (r *pass) abortFailed(ctx context.Context, s *scope, rel *shipper.Release) error {
	note, err := stamp.Fail(rel)
	if err != nil {
		return err
	}
	if s.app.Annotations[shipper.AppFailedAnnotation] != note {
		if err := r.annotate(ctx, s.app, map[string]string{shipper.AppFailedAnnotation: note}); err != nil {
			return err
		}
	}
	err = r.client.Delete(ctx, rel, client.Preconditions{UID: &rel.UID, ResourceVersion: &rel.ResourceVersion})
	if r.wrote(rel); err != nil {
		return fmt.Errorf("aborting release %s/%s: %w", rel.Namespace, rel.Name, err)
	}
	report.Emit(r.recorder, s.app, []report.Event{events.Warning(abortedOnFailureReason, "Abort", "Release %q has failed: %s", key(rel),
		rel.Status.Progress.Failure.Message)})
	return nil
}

// setProgress writes into the status of the i-th live Release what it does by itself. A Release that is not the newest does nothing; what
// was said of one that completed stays.
func setProgress(s *scope, d progress.Decision, i int, out *shipper.ReleaseStatus, now metav1.Time) {
	newest := i == len(s.history.Live)-1
	if !newest && shipper.ConditionTrue(out.Conditions, shipper.ReleaseComplete) {
		return
	}
	if !newest {
		d = progress.Decision{}
	}
	out.Progress = d.Progress
	if d.Failed != nil {
		out.FailedClusters = d.Failed
	}
	if d.Progress != nil {
		out.RecoveringClusters = d.Recovering
	}
	if d.CommandNotAwaited && out.Strategy != nil {
		out.Strategy.State.WaitingForCommand = shipper.StrategyStateFalse
	}
	for _, known := range []string{shipper.ReleaseAdvancing, shipper.ReleaseFailed} {
		if shipper.FindCondition(d.Conditions, known) == nil && shipper.FindCondition(out.Conditions, known) != nil {
			out.Conditions = events.Without(out.Conditions, known)
		}
	}
	for _, c := range d.Conditions {
		c.Message = report.Shorten(c.Message, maxMessage)
		out.Conditions = shipper.SetCondition(out.Conditions, c, now)
	}
}
