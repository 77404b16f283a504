// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/answer"
	"shipper.dev/shipper/webhook/control"
	"shipper.dev/shipper/webhook/environment"
	"shipper.dev/shipper/webhook/gate"
)

var specPath = field.NewPath("spec")

func (w *Webhook) validateCreate(
	ctx context.Context, req *admission.Request, a *answer.Answer, rel *shipper.Release,
) error {
	if allowed, err := w.Guard.MayStamp(ctx, req, control.Release); err != nil {
		return err
	} else if !allowed {
		return answer.Forbid(resource, rel.Name, fmt.Sprintf(
			"Releases are made by Shipper when an Application changes: edit the Application instead "+
				"(user %q does not have the verb stamp on releases.%s)", req.UserInfo.Username, shipper.GroupName))
	}
	app, err := w.Facts.Application(ctx, owner(rel))
	if err != nil {
		return err
	}
	errs := validateStamp(rel, app)
	errs = append(errs, environment.Validate(&rel.Spec.Environment, specPath.Child("environment"))...)
	errs = append(errs, validateTargetStep(rel)...)
	overrides, more := w.Gate.Check(ctx, rel.Namespace, rel.Annotations[shipper.RolloutBlockOverrideAnnotation], nil)
	if err := answer.Invalidate(kind, rel.Name, append(errs, more...)); err != nil {
		return err
	}
	added := overrides
	if req.UserInfo.Username == w.Guard.Reconciler {
		added = gate.Added(gate.Overrides(app.Annotations), overrides) // who overrode for the Application was judged then
	}
	if err := w.Gate.Permit(ctx, req.UserInfo, resource, rel.Name, added); err != nil {
		return err
	}
	_, annotated := app.Annotations[shipper.RolloutBlockOverrideAnnotation]
	maker := answer.Subject{
		Short: "app", Namespace: app.Namespace, Name: app.Name,
		Annotated: annotated,
	}
	return w.Gate.Judge(a, resource, rel.Name, maker, overrides)
}

func (w *Webhook) validateUpdate(
	ctx context.Context, req *admission.Request, a *answer.Answer, rel, old *shipper.Release,
) error {
	var errs field.ErrorList
	if !stamp.SameEnvironment(&rel.Spec.Environment, &old.Spec.Environment) {
		errs = append(errs, field.Forbidden(specPath.Child("environment"),
			"the Release environment must not be changed; edit the Application instead"))
	}
	if req.UserInfo.Username != w.Guard.Reconciler {
		more, err := w.ownerOf(old).Check(ctx, &old.ObjectMeta, &rel.ObjectMeta)
		if err != nil {
			return err
		}
		errs = append(errs, more...)
	}
	moved := rel.Spec.TargetStep != old.Spec.TargetStep
	if moved {
		errs = append(errs, validateTargetStep(rel)...)
	}
	before, overrides := gate.Overrides(old.Annotations), gate.Overrides(rel.Annotations)
	if moved || !gate.SameOverride(rel.Annotations, old.Annotations) {
		var more field.ErrorList
		overrides, more = w.Gate.Check(ctx, rel.Namespace, rel.Annotations[shipper.RolloutBlockOverrideAnnotation], before)
		errs = append(errs, more...)
	}
	if err := answer.Invalidate(kind, rel.Name, errs); err != nil {
		return err
	}
	if err := w.Gate.Permit(ctx, req.UserInfo, resource, rel.Name, gate.Added(before, overrides)); err != nil {
		return err
	}
	if !moved {
		return nil
	}
	if err := w.Gate.Judge(a, resource, rel.Name, subject(rel), overrides); err != nil {
		return err
	}
	return w.warnWithoutEffect(a, rel)
}

// validateDelete lets a Release go with its Application or namespace, whoever asks: the garbage collector has no other
// choice, and nobody is kept from rolling out by an Application that is gone.
func (w *Webhook) validateDelete(ctx context.Context, a *answer.Answer, old *shipper.Release) error {
	if w.Facts.NamespaceGoing(old.Namespace) {
		return nil
	}
	if gone, err := w.ownerGone(ctx, old); err != nil || gone {
		return err
	}
	if err := w.Gate.Judge(a, resource, old.Name, subject(old), gate.Overrides(old.Annotations)); err != nil {
		return err
	}
	return w.warnOfAbort(a, old)
}

// ownerGone tells whether there is no Application of the name that rel has from its own, or it is being deleted. What
// rel refers to is not asked: a reference that is missing or refers to another Application says nothing of this one.
func (w *Webhook) ownerGone(ctx context.Context, rel *shipper.Release) (bool, error) {
	app, err := w.Facts.Application(ctx, owner(rel))
	if err != nil {
		return false, err
	}
	return app == nil || !app.DeletionTimestamp.IsZero(), nil
}

func (w *Webhook) warnOfAbort(a *answer.Answer, old *shipper.Release) error {
	newest, previous, err := w.Facts.Newest(old)
	if err != nil || newest == nil || newest.Name != old.Name {
		return err
	}
	if previous == nil {
		a.Warn("this is the only Release of Application %s: Shipper makes it again from the template",
			old.Labels[shipper.AppLabel])
		return nil
	}
	a.Warn("deleting the newest Release aborts its rollout: Application %s goes back to Release %s",
		old.Labels[shipper.AppLabel], previous.Name)
	return nil
}

func (w *Webhook) warnWithoutEffect(a *answer.Answer, rel *shipper.Release) error {
	newest, _, err := w.Facts.Newest(rel)
	if err != nil || newest == nil || newest.Name == rel.Name {
		return err
	}
	a.Warn("targetStep has no effect here: Release %s is newer, and its targetStep moves both", newest.Name)
	return nil
}

// validateTargetStep wants targetStep to be a step of the strategy.
func validateTargetStep(rel *shipper.Release) field.ErrorList {
	var steps []shipper.RolloutStrategyStep
	if s := rel.Spec.Environment.Strategy; s != nil {
		steps = s.Steps
	}
	if step := rel.Spec.TargetStep; step >= 0 && int(step) < len(steps) {
		return nil
	}
	names := make([]string, len(steps))
	for i, s := range steps {
		names[i] = fmt.Sprintf("%d (%s)", i, s.Name)
	}
	return field.ErrorList{field.Invalid(specPath.Child("targetStep"), rel.Spec.TargetStep,
		"must be a step of the strategy: "+strings.Join(names, ", "))}
}
