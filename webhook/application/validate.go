// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/webhook/blockcheck"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/response"
	"shipper.dev/shipper/webhook/templatecheck"
)

// validateWrite validates app before it is stored. Unchanged parts are not refused.
func (w *Webhook) validateWrite(
	ctx context.Context, req *admission.Request, a *response.Response, app, old *shipper.Application,
) error {
	specChanged := old == nil || !sameSpec(&app.Spec, &old.Spec) || rollsBack(app, old)
	if specChanged {
		var err error
		if app, err = w.withStrategy(ctx, a, app, old); err != nil {
			return err
		}
	}
	if err := w.Guard.Check(ctx, req, protected.Observed, metaOf(old), &app.ObjectMeta); err != nil {
		return err
	}
	if err := w.validateClaim(ctx, req, app, old, specChanged); err != nil {
		return err
	}
	errs, err := w.validateSpec(ctx, a, app, old, specChanged)
	if err != nil {
		return err
	}
	errs = append(errs, w.validateRepository(app, old)...)
	errs = append(errs, validateLabels(app.Labels, metaOf(old).Labels)...)
	before, overrides := blockcheck.Overrides(metaOf(old).Annotations), blockcheck.Overrides(app.Annotations)
	overrideChanged := !blockcheck.SameOverride(app.Annotations, metaOf(old).Annotations)
	if specChanged || overrideChanged {
		var more field.ErrorList
		overrides, more = w.BlockCheck.Check(ctx, app.Namespace, app.Annotations, before)
		errs = append(errs, more...)
	}
	if err := response.Invalidate(kind, app.Name, errs); err != nil {
		return err
	}
	if err := w.permitContent(ctx, req, a, app, old, specChanged); err != nil {
		return err
	}
	added := blockcheck.Added(before, overrides)
	if err := w.BlockCheck.Permit(ctx, a, req.UserInfo, resource, &app.ObjectMeta, added); err != nil {
		return err
	}
	if old != nil && protected.OwnerAdded(&old.ObjectMeta, &app.ObjectMeta) {
		if err := w.judgeDeletion(ctx, req, a, old, block.Overrides(app.Annotations)); err != nil {
			return err
		}
	}
	warnOfNulls(a, app, old)
	if !specChanged {
		return w.judgeLabels(ctx, req, a, app, old)
	}
	if err := w.judge(ctx, req, a, app, old); err != nil {
		return err
	}
	if err := w.warnOfUnneededOverrides(ctx, req, a, app, old); err != nil {
		return err
	}
	return w.announce(ctx, req, a, app, old)
}

// validateSpec returns the errors of app's name and spec. Unchanged parts have none.
func (w *Webhook) validateSpec(
	ctx context.Context, a *response.Response, app, old *shipper.Application, specChanged bool,
) (field.ErrorList, error) {
	errs, err := w.validateNaming(app, old, specChanged)
	if err != nil || !specChanged {
		return errs, err
	}
	errs = append(errs, validateName(app.Name)...)
	template := app.Spec.Template
	if from := stamp.From(&template); from != nil {
		template.Strategy = &shipper.RolloutStrategy{From: from} // withStrategy has validated what is taken
	}
	errs = append(errs, w.validateTemplate(&template)...)
	more, err := w.validateFailed(app, old, w.BlockCheck.Clock.Now())
	if err != nil {
		return nil, err
	}
	errs = append(errs, more...)
	more, err = w.validateChecks(ctx, a, app, old)
	return append(errs, more...), err
}

// permitContent refuses, with 403, what the user may not place, read or use of what the template names.
func (w *Webhook) permitContent(
	ctx context.Context, req *admission.Request, a *response.Response, app, old *shipper.Application, specChanged bool,
) error {
	if err := w.judgeResources(ctx, req, app, old); err != nil {
		return err
	}
	if err := w.permitCredentials(ctx, req, app, old); err != nil {
		return err
	}
	if err := w.permitKeys(ctx, req, a, app, old); err != nil {
		return err
	}
	if specChanged || otherChart(app, old) {
		return w.permitSources(ctx, req, app, old)
	}
	return nil
}

// judgeLabels refuses to take an Application out of the scope of a block that stops it: otherwise its next change, such as a
// rollback that the block allows, would leave the scope for good.
func (w *Webhook) judgeLabels(
	ctx context.Context, req *admission.Request, a *response.Response, app, old *shipper.Application,
) error {
	if maps.Equal(app.Labels, old.Labels) {
		return nil
	}
	c, err := w.change(ctx, req, app, old)
	if err != nil {
		return err
	}
	verdict := func(labels map[string]string) (block.Verdict, error) {
		c.Labels = func() []map[string]string { return []map[string]string{labels} }
		return w.BlockCheck.Verdict(app.Namespace, block.Overrides(app.Annotations), c)
	}
	before, err := verdict(old.Labels)
	if err != nil || len(before.Effective) == 0 {
		return err
	}
	after, err := verdict(app.Labels)
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(before.Effective, func(b *shipper.RolloutBlock) bool { return slices.Contains(after.Effective, b) })
	return w.BlockCheck.Decide(a, resource, app.Name, overrider(app, false), block.Verdict{Effective: left})
}

// validateRepository refuses a repository that is not allowed when a user names it. An Application that was admitted before
// keeps it, and rollbacks to kept archives work; fetching is checked separately.
func (w *Webhook) validateRepository(app, old *shipper.Application) field.ErrorList {
	repoURL := app.Spec.Template.Chart.RepoURL
	if repoURL == "" || (old != nil && old.Spec.Template.Chart.RepoURL == repoURL) {
		return nil
	}
	if _, before := w.released(app, app.Spec.Template.Chart); before || w.restored(app, old) {
		return nil
	}
	if err := w.Charts.Allows(repoURL); errors.Is(err, chart.ErrNotAllowed) {
		return field.ErrorList{field.Invalid(chartPath.Child("repoUrl"), repoURL, err.Error())}
	}
	return nil
}

func (w *Webhook) validateDelete(
	ctx context.Context, req *admission.Request, a *response.Response, old *shipper.Application,
) error {
	if w.State.NamespaceTerminating(old.Namespace) {
		return nil
	}
	return w.judgeDeletion(ctx, req, a, old, block.Overrides(old.Annotations))
}

// judgeDeletion refuses the deletion of an Application, or a change that leads to it, under a block and without the right to place.
func (w *Webhook) judgeDeletion(
	ctx context.Context, req *admission.Request, a *response.Response, old *shipper.Application, overrides []block.Override,
) error {
	c, err := w.change(ctx, req, nil, old)
	if err != nil {
		return err
	}
	if err := w.BlockCheck.Judge(a, resource, old.Name, overrider(old, false), overrides, c); err != nil {
		return err
	}
	return w.permitRemoval(ctx, req, old)
}

// warnOfNulls warns of fields that the user has written as null.
func warnOfNulls(a *response.Response, app, old *shipper.Application) {
	response.WarnOfNulls(a, app, old, "`kubectl apply` drops it, so the chart's default counts; use `kubectl apply --server-side`, or a "+
		"value other than null", "spec.template.values", "spec.template.valuesPerRegion", "spec.template.valuesPerCluster")
	response.WarnOfNulls(a, app, old, response.NullGate, "spec.template.strategy")
}

// announce warns which Release the template creates and what to expect; a dry run gets the full plan.
func (w *Webhook) announce(
	ctx context.Context, req *admission.Request, a *response.Response, app, old *shipper.Application,
) error {
	for _, warning := range templatecheck.Warnings(&app.Spec.Template) {
		a.Warn("%s", warning)
	}
	if app.Spec.DriftPolicy == shipper.DriftHalt && app.Spec.Template.Resources == nil {
		a.Warn("spec.driftPolicy: Halt is the same as Report with a chart: it leaves objects alone only with resources")
	}
	existing, err := w.State.Releases(key(app))
	if err != nil {
		return err
	}
	placing, err := w.withContent(app)
	if err != nil {
		return err
	}
	next, isNew, err := stamp.Next(placing, existing)
	if err != nil {
		return response.Invalidate(kind, app.Name, field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), app.Name,
			err.Error()+"; choose a shorter name")})
	}
	if !isNew {
		return nil
	}
	around, err := w.around(app, old)
	if err != nil {
		return err
	}
	choice, unplaced := around.Select(&app.Spec.Template)
	rels, _ := stamp.SortByGeneration(stamp.Own(app, existing))
	p := plan{next: next, existing: rels, choice: choice, unplaced: unplaced, undecided: stamp.Undecided(app, existing)}
	if err := w.judgeChart(ctx, req, a, app, p); err != nil {
		return err
	}
	dryRun := req.DryRun != nil && *req.DryRun
	if old != nil || !warnOfCopy(a, app, rels) {
		announceRelease(a, next, dryRun)
	}
	if dryRun {
		if err := w.preview(ctx, req, a, app, old, p); err != nil {
			return err
		}
	}
	if unplaced != nil {
		a.Warn("%sno clusters can be chosen for it as they are now: %v", shipper.MightNotRollOut, unplaced)
	}
	clusters := around.Clusters()
	previewWaves(a, app.Spec.Template.Strategy, choice.Chosen, clusters, dryRun)
	warnOfPlacement(a, app.Spec.Template.ClusterRequirements.Placement, choice, clusters)
	warnOfUnusedValues(a, &app.Spec.Template, choice.Chosen, clusters)
	w.warnOfServers(ctx, a, app, choice.Chosen, clusters)
	return nil
}

// announceRelease names the Release that is made. It has no name before the content of its resources is taken.
func announceRelease(a *response.Response, next *shipper.Release, dryRun bool) {
	switch {
	case !awaitsContent(&next.Spec.Environment):
		a.Audit(response.AuditReleaseStamped, next.Name)
		a.Warn(shipper.MakesRelease+"%s", next.Name)
	case dryRun:
		a.Warn(shipper.Planned + "Shipper would take what spec.template.resources selects and, if that is anything, make a Release of it")
	default:
		a.Warn("Shipper takes the content of spec.template.resources now, and makes a Release of it")
	}
}

// awaitsContent reports whether there is no Release of an environment yet because its content has not been taken.
func awaitsContent(env *shipper.ReleaseEnvironment) bool {
	return env.Resources != nil && env.ResourcesDigest == ""
}

// validateName refuses names that cannot be the value of the label shipper-app.
func validateName(name string) field.ErrorList {
	if errs := validation.IsValidLabelValue(name); len(errs) > 0 {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), name,
			"is a label of all that is installed: "+strings.Join(errs, "; "))}
	}
	return nil
}

// validateLabels validates the one label of Applications with a meaning, when it changes.
func validateLabels(now, old map[string]string) field.ErrorList {
	value, there := now[shipper.HelmWorkaroundLabel]
	was, before := old[shipper.HelmWorkaroundLabel]
	if !there || (before && was == value) || value == "true" || value == "false" {
		return nil
	}
	return field.ErrorList{field.NotSupported(
		field.NewPath("metadata", "labels").Key(shipper.HelmWorkaroundLabel), value, []string{"true", "false"})}
}
