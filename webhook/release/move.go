// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/progress"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/response"
)

// note records who moved a Release, and who holds it.
func (w *Webhook) note(req *admission.Request, rel, old *shipper.Release) {
	if rel.Spec.TargetStep != old.Spec.TargetStep {
		response.Annotate(&rel.ObjectMeta, shipper.ReleaseMovedAnnotation,
			stamp.Move(old, rel, req.UserInfo.Username, w.reason(req, rel, old), metav1.NewTime(w.BlockCheck.Clock.Now())))
	}
	if rel.Spec.Hold == old.Spec.Hold {
		return
	}
	if by := holder(req, rel, old); by != "" {
		response.Annotate(&rel.ObjectMeta, shipper.ReleaseHeldByAnnotation, by)
		return
	}
	delete(rel.Annotations, shipper.ReleaseHeldByAnnotation)
}

// holder is the user who holds a Release after a request; empty when it is not held.
func holder(req *admission.Request, rel, old *shipper.Release) string {
	switch rel.Spec.Hold {
	case old.Spec.Hold:
		return old.Annotations[shipper.ReleaseHeldByAnnotation]
	case "":
		return ""
	}
	return req.UserInfo.Username
}

// reason is why the reconciler moves a Release by itself; empty for a user, and when an abort of another Release is the reason.
func (w *Webhook) reason(req *admission.Request, rel, old *shipper.Release) string {
	if !w.reconciler(req) || rel.Annotations[shipper.ReleaseMovedAnnotation] == old.Annotations[shipper.ReleaseMovedAnnotation] {
		return ""
	}
	return stamp.Moved(rel).Why
}

// validateNotes compares what note records with the request. A move without a note, where the mutating webhook was not called, is known
// to the reconciler by its own figures.
func (w *Webhook) validateNotes(ctx context.Context, req *admission.Request, rel, old *shipper.Release) (field.ErrorList, error) {
	var errs field.ErrorList
	wrong := func(key string) {
		errs = append(errs, field.Forbidden(annotationsPath.Key(key), "is written by Shipper; leave it as it is"))
	}
	is, was := rel.Annotations[shipper.ReleaseMovedAnnotation], old.Annotations[shipper.ReleaseMovedAnnotation]
	note := stamp.Moved(rel)
	if is != was && (rel.Spec.TargetStep == old.Spec.TargetStep || note.Why != "" && !w.reconciler(req) ||
		is != stamp.Move(old, rel, req.UserInfo.Username, note.Why, note.Time)) {
		wrong(shipper.ReleaseMovedAnnotation)
	}
	if rel.Annotations[shipper.ReleaseHeldByAnnotation] != holder(req, rel, old) {
		wrong(shipper.ReleaseHeldByAnnotation)
	}
	if len(errs) == 0 {
		return nil, nil
	}
	allowed, err := w.Guard.MayStamp(ctx, req, protected.Release)
	if err != nil || allowed {
		return nil, err
	}
	return errs, nil
}

// validateMove refuses a move past the gate of a step that is not achieved, unless the user may skip gates. The reconciler never may, but
// for the Release that an abort brings back, which has passed them. By itself it goes up one step at a time, and nowhere under a hold.
func (w *Webhook) validateMove(ctx context.Context, req *admission.Request, rel, old *shipper.Release) error {
	from, to, why := old.Spec.TargetStep, rel.Spec.TargetStep, ""
	if w.reconciler(req) {
		why = stamp.Moved(rel).Why
	}
	switch {
	case from == to || why == progress.NewerAborted:
		return nil
	case why != "" && (old.Spec.Hold != "" || to > from && (to != from+1 || !progress.Achieved(old, from))):
		return response.Forbid(resource, rel.Name, fmt.Sprintf("Shipper goes on by itself from an achieved step to the next, and nowhere while "+
			"spec.hold is set: it asked to go from step %d to step %d", from, to))
	case to < from:
		return nil
	}
	closed := closedGate(old, to)
	if closed < 0 {
		return nil
	}
	if !w.reconciler(req) {
		key := types.NamespacedName{Namespace: req.Namespace, Name: req.Name}
		allowed, err := w.Guard.Authz.May(ctx, req.UserInfo, authz.On(authz.Skip, resource, key))
		switch {
		case err != nil:
			return response.Later(err.Error(), authz.RetryAfter)
		case allowed:
			return nil
		}
	}
	return response.Forbid(resource, rel.Name, refusalOfGate(old, closed))
}

// judgeLikeStep judges the end of a hold, with which the Release goes on, and what makes Pods, by the blocks that stop an advance. A hold
// itself is always admitted.
func (w *Webhook) judgeLikeStep(
	ctx context.Context, req *admission.Request, a *response.Response, app block.App, rel, old *shipper.Release,
) error {
	changed, is := rel.Spec.Hold != old.Spec.Hold, rel.Spec.Hold != ""
	if changed && is && !strategy.ByItself(rel.Spec.Environment.Strategy) {
		a.Warn("nothing moves this Release by itself: hold has no effect")
	}
	if ends := changed && !is; !ends && !beginsPods(rel, old) {
		return nil
	}
	return w.BlockCheck.Judge(a, resource, rel.Name, overrider(rel), block.Overrides(rel.Annotations), w.asked(ctx, req, app.Step(rel)))
}

// closedGate is the first step before to that has a gate and is not achieved; -1 when there is none.
func closedGate(old *shipper.Release, to int32) int32 {
	s := old.Spec.Environment.Strategy
	if s == nil {
		return -1
	}
	for i := old.Spec.TargetStep; i < to && int(i) < len(s.Steps); i++ {
		if s.Gated(i) && !progress.Achieved(old, i) {
			return i
		}
	}
	return -1
}

func refusalOfGate(rel *shipper.Release, step int32) string {
	name := rel.Spec.Environment.Strategy.Steps[step].Name
	text := fmt.Sprintf("step %d (%s) is a gate and is not achieved", step, name)
	if rel.Spec.TargetStep == step {
		text += awaited(rel, step)
	}
	if rel.Spec.TargetStep < step {
		text += fmt.Sprintf(". Go to step %d first: kubectl patch rel %s -n %s --type=merge -p '{\"spec\":{\"targetStep\":%d}}'",
			step, rel.Name, rel.Namespace, step)
	}
	return text + fmt.Sprintf(". To pass it all the same, ask a user with the verb skip on releases "+
		"(kubectl auth can-i skip releases.%s/%s -n %s)", shipper.GroupName, rel.Name, rel.Namespace)
}

// awaited says why a step is not achieved: checks that have failed or are undecided, or else what status says.
func awaited(rel *shipper.Release, step int32) string {
	var wrong []string
	if p := rel.Status.Progress; p != nil && p.Step == step {
		for _, c := range p.Checks {
			if text := phaseOf(c); text != "" && !c.DryRun {
				wrong = append(wrong, text)
			}
		}
	}
	if len(wrong) > 0 {
		return ": " + strings.Join(wrong, ", ")
	}
	if c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseAdvancing); c != nil && c.Message != "" {
		return ": " + c.Message
	}
	return ""
}

// phaseOf describes a check that does not pass; empty for one that has passed or goes on.
func phaseOf(c shipper.ReleaseCheck) string {
	text := ""
	switch c.Phase {
	case shipper.CheckHasFailed:
		text = fmt.Sprintf("check %s failed", c.Name)
	case shipper.CheckUndecided:
		text = fmt.Sprintf("check %s is undecided", c.Name)
	default:
		return ""
	}
	if c.Cluster != "" {
		text += " in " + c.Cluster
	}
	return text
}

// warnOfProgress says what Shipper will do by itself after a move.
func warnOfProgress(a *response.Response, rel, old *shipper.Release) {
	s := rel.Spec.Environment.Strategy
	if !strategy.ByItself(s) {
		return
	}
	from, to := old.Spec.TargetStep, rel.Spec.TargetStep
	switch {
	case to < from:
		a.Warn("this goes back: nothing goes on by itself until targetStep is raised")
	case s.Steps[to].After != "" && rel.Spec.Hold == "":
		a.Warn("it goes on by itself to step %d (%s) %s after step %d has what it wants", to+1, s.Steps[to+1].Name, s.Steps[to].After, to)
	}
}
