// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/progress"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/response"
)

// isMoved reports whether a request moves a Release.
func isMoved(rel, old *shipper.Release) bool {
	return rel.Spec.TargetStep != old.Spec.TargetStep || ptr.Deref(rel.Spec.TargetWave, 0) != ptr.Deref(old.Spec.TargetWave, 0)
}

// note records who moved a Release, and who holds it.
func (w *Webhook) note(req *admission.Request, rel, old *shipper.Release) {
	if isMoved(rel, old) {
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
	if is != was && (!isMoved(rel, old) || note.Why != "" && !w.reconciler(req) ||
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

// validateMove refuses a move past the gate of a step that is not achieved, or past a wave that is not done, unless the user may skip
// gates. The reconciler never may, but for the Release that an abort brings back, which has passed them. By itself it goes up one position
// at a time, and nowhere under a hold.
func (w *Webhook) validateMove(ctx context.Context, req *admission.Request, rel, old *shipper.Release) error {
	from, to, why := position.Of(old), position.Of(rel), ""
	next, more := from.Next(old.Spec.Environment.Strategy)
	if w.reconciler(req) {
		why = stamp.Moved(rel).Why
	}
	switch {
	case from == to || why == progress.NewerAborted:
		return nil
	case why != "" && (old.Spec.Hold != "" || from.Before(to) && (!more || to != next || !progress.Achieved(old, from))):
		s := old.Spec.Environment.Strategy
		return response.Forbid(resource, rel.Name, fmt.Sprintf("Shipper advances by itself from an achieved step to the next, and nowhere while "+
			"spec.hold is set: it asked to go from %s to %s", from.In(s), to.In(s)))
	case to.Before(from):
		return nil
	}
	closed, is := closedGate(old, to)
	if !is || to.Wave > old.Spec.Environment.Strategy.LastWave() { // such a wave is invalid
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
	ends := changed && !is
	switch {
	case beginsPods(rel, old): // in all clusters
	case ends:
		c, clusters := app.Resume(rel)
		return w.judgeIn(a, rel, w.asked(ctx, req, c), clusters)
	default:
		return nil
	}
	return w.BlockCheck.Judge(a, resource, rel.Name, overrider(rel), block.Overrides(rel.Annotations), w.asked(ctx, req, app.Step(rel)))
}

// closedGate is the first position before to that has a gate, or ends a wave, and is not achieved.
func closedGate(old *shipper.Release, to position.Position) (closed position.Position, is bool) {
	s := old.Spec.Environment.Strategy
	if s == nil {
		return closed, false
	}
	for at, more := position.Of(old), true; more && at.Before(to); at, more = at.Next(s) {
		ends := at.Wave < s.LastWave() && at.Step >= s.LastStep()
		if (ends || s.GatedIn(at.Wave, at.Step)) && !progress.Achieved(old, at) {
			return at, true
		}
	}
	return closed, false
}

func refusalOfGate(rel *shipper.Release, at position.Position) string {
	s, from := rel.Spec.Environment.Strategy, position.Of(rel)
	text := fmt.Sprintf("wave %s is not done", position.WaveName(s, at.Wave))
	if at.Step < s.LastStep() {
		text = fmt.Sprintf("%s (%s) is a gate and is not achieved", at.In(s), s.Steps[at.Step].Name)
	}
	if from == at {
		text += awaited(rel, at)
	}
	if from.Before(at) {
		patch := fmt.Sprintf(`{"spec":{"targetStep":%d}}`, at.Step)
		if len(s.Waves) > 0 {
			patch = fmt.Sprintf(`{"spec":{"targetStep":%d,"targetWave":%d}}`, at.Step, at.Wave)
		}
		text += fmt.Sprintf(". Go to %s first: kubectl patch rel %s -n %s --type=merge -p '%s'", at.In(s), rel.Name, rel.Namespace, patch)
	}
	return text + fmt.Sprintf(". To skip it, ask a user with the verb skip on releases "+
		"(kubectl auth can-i skip releases.%s/%s -n %s)", shipper.GroupName, rel.Name, rel.Namespace)
}

// awaited says why a step is not achieved: checks that have failed or are undecided, or else what status says.
func awaited(rel *shipper.Release, at position.Position) string {
	var wrong []string
	if p := rel.Status.Progress; p != nil && p.Step == at.Step && p.Wave == at.Wave {
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
	from, to := position.Of(old), position.Of(rel)
	next, more := to.Next(s)
	if to.Wave > from.Wave && to.Step > 0 {
		a.Warn("this begins wave %s at step %d (%s): set targetStep to 0 to go through the steps before", position.WaveName(s, to.Wave),
			to.Step, s.Steps[to.Step].Name)
	}
	if rel.Spec.Hold != "" && len(s.Waves) > 0 && from.Before(to) {
		a.Warn("spec.hold is set: no further cluster begins until it is removed (shipperctl rollout resume)")
	}
	switch {
	case to.Before(from):
		a.Warn("this is a retreat: nothing advances by itself until targetStep is raised")
	case !more || rel.Spec.Hold != "":
	case len(s.Steps) == 0 && s.IsAutomatic():
		a.Warn("it advances by itself to %s when %s is done", next.In(s), to.In(s))
	case len(s.Steps) == 0:
	case s.Steps[to.Step].After != "":
		a.Warn("it advances by itself to %s (%s) %s after step %d has its capacity and traffic", next.In(s), s.Steps[next.Step].Name,
			s.Steps[to.Step].After, to.Step)
	case s.IsAutomatic():
		a.Warn("it advances by itself to %s (%s) when %s has its capacity and traffic", next.In(s), s.Steps[next.Step].Name, to.In(s))
	}
}
