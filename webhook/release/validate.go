// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/blockcheck"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/response"
	"shipper.dev/shipper/webhook/templatecheck"
)

var specPath = field.NewPath("spec")

func (w *Webhook) validateCreate(
	ctx context.Context, req *admission.Request, a *response.Response, rel *shipper.Release,
) error {
	if allowed, err := w.Guard.MayStamp(ctx, req, protected.Release); err != nil {
		return err
	} else if !allowed {
		return response.Forbid(resource, rel.Name, fmt.Sprintf(
			"Releases are made by Shipper when an Application changes: edit the Application instead "+
				"(user %q does not have the verb stamp on releases.%s)", req.UserInfo.Username, shipper.GroupName))
	}
	app, err := w.State.Application(ctx, owner(rel))
	if err != nil {
		return err
	}
	errs := validateStamp(rel, app)
	errs = append(errs, templatecheck.Validate(&rel.Spec.Environment, specPath.Child("environment"))...)
	errs = append(errs, validateTargetStep(rel)...)
	errs = append(errs, validateContent(rel)...)
	errs = append(errs, templatecheck.ValidateRecord(&rel.Spec.Environment, specPath.Child("environment", "strategy"))...)
	if err := w.warnOfChecks(ctx, req, a, rel); err != nil {
		return err
	}
	overrides, more := w.BlockCheck.Check(ctx, rel.Namespace, rel.Annotations, nil)
	if err := response.Invalidate(kind, rel.Name, append(errs, more...)); err != nil {
		return err
	}
	added := overrides
	if req.UserInfo.Username == w.Guard.Reconciler {
		added = blockcheck.Added(blockcheck.Overrides(app.Annotations), overrides) // the others were checked there
	}
	if err := w.BlockCheck.Permit(ctx, a, req.UserInfo, resource, &rel.ObjectMeta, added); err != nil {
		return err
	}
	around, err := w.State.App(rel)
	if err != nil {
		return err
	}
	c := w.creation(ctx, req, around, rel)
	maker := response.OverriderOf("app", &app.ObjectMeta)
	return w.BlockCheck.Judge(a, resource, rel.Name, maker, block.Overrides(rel.Annotations), c)
}

func (w *Webhook) validateUpdate(
	ctx context.Context, req *admission.Request, a *response.Response, rel, old *shipper.Release,
) error {
	if err := w.Guard.Check(ctx, req, guarded(protected.Stamped, old, rel), &old.ObjectMeta, &rel.ObjectMeta); err != nil {
		return err
	}
	var errs field.ErrorList
	if is, was := &rel.Spec.Environment, &old.Spec.Environment; !stamp.SameEnvironment(is, was) || is.Chart.Naming != was.Chart.Naming {
		errs = append(errs, field.Forbidden(specPath.Child("environment"),
			"the Release environment must not be changed; edit the Application instead"))
	}
	more, err := w.ownerOf(old).Check(ctx, &old.ObjectMeta, &rel.ObjectMeta)
	if err != nil {
		return err
	}
	errs = append(errs, more...)
	if more, err = w.validateNotes(ctx, req, rel, old); err != nil {
		return err
	}
	errs = append(errs, more...)
	errs = append(errs, validateRetry(rel, old)...)
	errs = append(errs, validateDropped(rel, old)...)
	moved, begins := isMoved(rel, old), beginsPods(rel, old)
	if moved {
		errs = append(errs, validateTargetStep(rel)...)
	}
	before, overrides := blockcheck.Overrides(old.Annotations), blockcheck.Overrides(rel.Annotations)
	if moved || begins || !blockcheck.SameOverride(rel.Annotations, old.Annotations) {
		var more field.ErrorList
		overrides, more = w.BlockCheck.Check(ctx, rel.Namespace, rel.Annotations, before)
		errs = append(errs, more...)
	}
	if err := response.Invalidate(kind, rel.Name, errs); err != nil {
		return err
	}
	if err := w.BlockCheck.Permit(ctx, a, req.UserInfo, resource, &rel.ObjectMeta, blockcheck.Added(before, overrides)); err != nil {
		return err
	}
	app, err := w.State.App(old)
	if err != nil {
		return err
	}
	if !w.reconciler(req) && protected.OwnerAdded(&old.ObjectMeta, &rel.ObjectMeta) {
		if err := w.judgeDeletion(ctx, req, a, app, rel, old); err != nil {
			return err
		}
	}
	if err := w.judgeLikeStep(ctx, req, a, app, rel, old); err != nil || !moved {
		return err
	}
	if err := w.validateMove(ctx, req, rel, old); err != nil {
		return err
	}
	c, clusters := w.step(ctx, req, app, rel, old)
	if err := w.judgeIn(a, rel, c, clusters); err != nil {
		return err
	}
	warnWithoutEffect(a, rel, app.Newest())
	warnOfProgress(a, rel, old)
	return nil
}

// maxRetry bounds the annotation with which users have checks made again, in bytes: CheckTargets have copies.
const maxRetry = 64

func validateRetry(rel, old *shipper.Release) field.ErrorList {
	is, was := rel.Annotations[shipper.ReleaseChecksRetryAnnotation], old.Annotations[shipper.ReleaseChecksRetryAnnotation]
	if is == was || len(is) <= maxRetry {
		return nil
	}
	return field.ErrorList{field.TooLong(annotationsPath.Key(shipper.ReleaseChecksRetryAnnotation), "", maxRetry)}
}

// warnOfChecks warns of checks that cannot run. Users create Releases from a backup, whose history may name Checks that are gone.
func (w *Webhook) warnOfChecks(ctx context.Context, req *admission.Request, a *response.Response, rel *shipper.Release) error {
	if w.reconciler(req) {
		return nil
	}
	path := specPath.Child("environment", "strategy")
	wrong, err := w.Checks.Validate(ctx, rel.Spec.Environment.Strategy, rel.Namespace, path)
	if err == nil && len(wrong) > 0 {
		a.Warn("its checks cannot run: %v", wrong[0])
	}
	return err
}

// validateDelete admits the deletion of a Release with its Application or namespace for all users: the garbage collector must
// be able to delete, and a deleted Application has no more rollouts.
func (w *Webhook) validateDelete(
	ctx context.Context, req *admission.Request, a *response.Response, old *shipper.Release,
) error {
	if w.State.NamespaceTerminating(old.Namespace) {
		return nil
	}
	if gone, err := w.ownerGone(ctx, old); err != nil || gone {
		return err
	}
	if protected.Orphans(req, &old.ObjectMeta) {
		return response.Forbid(resource, old.Name, "delete it without --cascade=orphan: its targets would stay, and with them what it has in "+
			"the clusters, also its traffic")
	}
	app, err := w.State.App(old)
	if err != nil {
		return err
	}
	if err := w.judgeDeletion(ctx, req, a, app, old, old); err != nil {
		return err
	}
	return w.validateServing(ctx, req, a, app, old)
}

// judgeDeletion refuses the deletion of old, or a change that leads to it, under a block that rel does not override and without the right
// to place.
func (w *Webhook) judgeDeletion(
	ctx context.Context, req *admission.Request, a *response.Response, app block.App, rel, old *shipper.Release,
) error {
	c := w.deletion(ctx, req, app, old)
	if err := w.BlockCheck.Judge(a, resource, rel.Name, overrider(rel), block.Overrides(rel.Annotations), c); err != nil {
		return err
	}
	return w.permitRemoval(ctx, req, a, app, old)
}

// ownerGone reports whether rel's Application, by its label, does not exist or is being deleted. It ignores rel's reference:
// that may be missing or name another Application.
func (w *Webhook) ownerGone(ctx context.Context, rel *shipper.Release) (bool, error) {
	app, err := w.State.Application(ctx, owner(rel))
	if err != nil {
		return false, err
	}
	return app == nil || !app.DeletionTimestamp.IsZero(), nil
}

// warnOfAbort describes the effect of deleting the newest Release; previous is nil when it is the only one, share is empty when
// it serves nothing or that is unknown.
func warnOfAbort(a *response.Response, newest, previous *shipper.Release, share string) {
	if previous == nil {
		a.Warn("this is the only Release of Application %s: Shipper makes it again from the template",
			newest.Labels[shipper.AppLabel])
		return
	}
	a.Warn("deleting the newest Release aborts its rollout: Application %s goes back to Release %s",
		newest.Labels[shipper.AppLabel], previous.Name)
	switch {
	case share == "":
	case withoutTraffic(previous):
		a.Warn("Release %s serves %s, and is removed when Release %s is at its step again and another serves in its place", newest.Name, share,
			previous.Name)
	default:
		a.Warn("Release %s serves %s, and is removed when Release %s serves in its place", newest.Name, share, previous.Name)
	}
}

// withoutTraffic reports whether a Release is brought back at a step that gives it no traffic, as one that has failed. One that completed
// goes to its last step.
func withoutTraffic(rel *shipper.Release) bool {
	s, step := rel.Spec.Environment.Strategy, int(rel.Spec.TargetStep)
	return s != nil && !strategy.Complete(rel) && step < len(s.Steps) && s.Steps[step].Traffic.Contender == 0
}

// warnWithoutEffect warns a user who moves a Release that is not the newest.
func warnWithoutEffect(a *response.Response, rel, newest *shipper.Release) {
	if newest != nil && newest.Name != rel.Name {
		a.Warn("targetStep has no effect here: Release %s is newer, and its targetStep moves both", newest.Name)
	}
}

// validateContent requires the digest of the content of a Release with resources.
func validateContent(rel *shipper.Release) field.ErrorList {
	env := &rel.Spec.Environment
	if env.Resources == nil || env.ResourcesDigest != "" {
		return nil
	}
	return field.ErrorList{field.Required(specPath.Child("environment", "resourcesDigest"), "a Release has the digest of its content")}
}

// validateTargetWave requires targetWave to be a wave of the strategy; 0 where there are none.
func validateTargetWave(rel *shipper.Release) field.ErrorList {
	s, wave := rel.Spec.Environment.Strategy, ptr.Deref(rel.Spec.TargetWave, 0)
	path := specPath.Child("targetWave")
	switch {
	case wave == 0, s != nil && wave > 0 && int(wave) < len(s.Waves):
		return nil
	case s == nil || len(s.Waves) == 0:
		return field.ErrorList{field.Invalid(path, wave, "the strategy has no waves: leave it out")}
	}
	names := make([]string, len(s.Waves))
	for i := range s.Waves {
		names[i] = fmt.Sprintf("%d (%s)", i, s.Waves[i].Name)
	}
	return field.ErrorList{field.Invalid(path, wave, "must be a wave of the strategy: "+strings.Join(names, ", "))}
}

// validateDropped refuses to leave targetWave out once it is above 0: a client that does not know the field would move the Release back to
// the first wave.
func validateDropped(rel, old *shipper.Release) field.ErrorList {
	s, was := old.Spec.Environment.Strategy, position.Of(old).Wave
	if was == 0 || rel.Spec.TargetWave != nil {
		return nil
	}
	return field.ErrorList{field.Required(specPath.Child("targetWave"), fmt.Sprintf(
		"it is %d (%s): write it as it is, or 0 to go back to wave %s", was, position.WaveName(s, was), position.WaveName(s, 0)))}
}

// validateTargetStep requires targetStep to be a step of the strategy, and targetWave a wave.
func validateTargetStep(rel *shipper.Release) field.ErrorList {
	var steps []shipper.RolloutStrategyStep
	if s := rel.Spec.Environment.Strategy; s != nil {
		steps = s.Steps
	}
	if errs := validateTargetWave(rel); len(errs) > 0 {
		return errs
	}
	if step := rel.Spec.TargetStep; step >= 0 && int(step) < len(steps) {
		return nil
	} else if rel.Spec.Environment.Resources != nil {
		if step == 0 {
			return nil
		}
		return field.ErrorList{field.Invalid(specPath.Child("targetStep"), step, "resources have no steps: leave it at 0")}
	}
	names := make([]string, len(steps))
	for i, s := range steps {
		names[i] = fmt.Sprintf("%d (%s)", i, s.Name)
	}
	return field.ErrorList{field.Invalid(specPath.Child("targetStep"), rel.Spec.TargetStep,
		"must be a step of the strategy: "+strings.Join(names, ", "))}
}
