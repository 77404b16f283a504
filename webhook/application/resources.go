// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/rights"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/resources"
	"shipper.dev/shipper/webhook/response"
)

// completeResources fills in what a template with resources may leave out: an empty strategy.
func completeResources(app *shipper.Application) {
	if now := &app.Spec.Template; now.Resources != nil && now.Strategy == nil {
		now.Strategy = &shipper.RolloutStrategy{}
	}
}

// resourcesRefreshWanted reports whether the user requests that the content of resources is taken again.
func resourcesRefreshWanted(app, old *shipper.Application) bool {
	now := app.Annotations[shipper.AppResourcesRefreshAnnotation]
	return app.Spec.Template.Resources != nil && now != "" && now != metaOf(old).Annotations[shipper.AppResourcesRefreshAnnotation]
}

// selects reports whether a write chooses what is placed: the user consents to content that others write later.
func selects(app, old *shipper.Application) bool {
	now := app.Spec.Template.Resources
	return now != nil &&
		(old == nil || !stamp.SameSelectors(now, old.Spec.Template.Resources) || resourcesRefreshWanted(app, old))
}

// acts reports whether a write changes what Shipper does with the right to place: any change of spec is judged as if its author had
// selected, so that no field can be forgotten.
func acts(app, old *shipper.Application) bool {
	if old == nil || app.Spec.Template.Resources == nil && old.Spec.Template.Resources == nil {
		return app.Spec.Template.Resources != nil
	}
	return !sameSpec(&app.Spec, &old.Spec) || resourcesRefreshWanted(app, old) || rollsBack(app, old)
}

// samePlacing reports whether two templates place the same objects in the same way on the same clusters.
func samePlacing(a, b *shipper.ReleaseEnvironment) bool {
	return equality.Semantic.DeepEqual(a.Resources, b.Resources) && equality.Semantic.DeepEqual(a.Apply, b.Apply) &&
		equality.Semantic.DeepEqual(a.ClusterRequirements, b.ClusterRequirements)
}

// stampSelector records the user whose rights the Application is placed with from now on. An Application that the reconciler restores keeps
// the record.
func (w *Webhook) stampSelector(req *admission.Request, app, old *shipper.Application) error {
	key := shipper.AppSelectedByAnnotation
	if app.Spec.Template.Resources == nil {
		delete(app.Annotations, key)
		return nil
	}
	_, restored := app.Annotations[key]
	if !acts(app, old) || req.UserInfo.Username == w.Guard.Reconciler || old == nil && restored {
		return nil // guard admits the annotation on creation only from users who may stamp
	}
	text, err := rights.FormatSelector(req.UserInfo)
	if err != nil {
		return err
	}
	response.Annotate(&app.ObjectMeta, key, text)
	return nil
}

// withContent is app with the digest of the content that its next Release places unless content is taken again.
func (w *Webhook) withContent(app *shipper.Application) (*shipper.Application, error) {
	if app.Spec.Template.Resources == nil {
		return app, nil
	}
	rels, err := w.State.Releases(key(app))
	if err != nil {
		return nil, err
	}
	digest, _ := stamp.NextContent(app, rels)
	return stamp.WithContent(app, rels, digest), nil
}

// rollsBack reports whether a write requests a rollback, which need not change the template: content is not in it.
func rollsBack(app, old *shipper.Application) bool {
	to := app.Annotations[shipper.AppRolledBackToAnnotation]
	return old != nil && app.Spec.Template.Resources != nil && to != "" && to != old.Annotations[shipper.AppRolledBackToAnnotation]
}

// placedBefore reports whether a Release of app has placed its content in the same way: it was valid then. Who returns to it needs the
// right to place all the same.
func (w *Webhook) placedBefore(app *shipper.Application) (bool, error) {
	now, err := w.withContent(app)
	if err != nil || now.Spec.Template.ResourcesDigest == "" {
		return false, err
	}
	rels, err := w.releases(app)
	return slices.ContainsFunc(rels, func(rel *shipper.Release) bool {
		is := &rel.Spec.Environment
		return is.ResourcesDigest == now.Spec.Template.ResourcesDigest && samePlacing(is, &now.Spec.Template)
	}), err
}

// judgeResources refuses resources that may not be placed, that the user may not place, or that Shipper may not read. It judges only what a
// write changes. The template must be valid.
func (w *Webhook) judgeResources(ctx context.Context, req *admission.Request, app, old *shipper.Application) error {
	now, was := app.Spec.Template.Resources, (*shipper.Resources)(nil)
	if old != nil {
		was = old.Spec.Template.Resources
	}
	if now == nil {
		return w.permitPlacing(ctx, req, app, old, nil)
	}
	errs, err := resources.ValidateReady(ctx, app.Namespace, now, was)
	if err != nil {
		return err
	}
	if err := response.Invalidate(kind, app.Name, errs); err != nil {
		return err
	}
	if err := w.checkSelector(ctx, req, app, old); err != nil {
		return err
	}
	before, err := w.placedBefore(app)
	if err != nil {
		return err
	}
	if !selects(app, old) || before && !resourcesRefreshWanted(app, old) {
		return w.permitPlacing(ctx, req, app, old, nil)
	}
	selection, err := w.resolveSelection(ctx, app)
	if err != nil {
		return err
	}
	if err := w.permitPlacing(ctx, req, app, old, selection); err != nil {
		return err
	}
	errs, err = w.Resources.Readable(ctx, selection)
	if err != nil {
		return err
	}
	return response.Invalidate(kind, app.Name, errs)
}

// permitPlacing refuses a write that acts with the right to place, unless the user has it: for what is selected, and for what was selected,
// because objects that are no longer selected are removed. selection is what app selects, nil if that is not new. The reconciler asks for
// the rights of the recorded user.
func (w *Webhook) permitPlacing(
	ctx context.Context, req *admission.Request, app, old *shipper.Application, selection *resources.Selection,
) error {
	if !acts(app, old) || req.UserInfo.Username == w.Guard.Reconciler {
		return nil
	}
	var all []*resources.Selection
	if selection != nil {
		all = append(all, selection)
	} else if now := app.Spec.Template.Resources; now != nil {
		placed, err := w.Resources.Placed(ctx, app.Namespace, now, nil)
		if err != nil {
			return err
		}
		all = append(all, placed)
	}
	use := resources.Use{Who: req.UserInfo, Resource: resource, Name: app.Name}
	if old != nil && old.Spec.Template.Resources != nil {
		placed, err := w.Resources.Placed(ctx, old.Namespace, old.Spec.Template.Resources, old.Annotations)
		if err != nil {
			return err
		}
		all = append(all, placed)
		use.SelectedBy = old.Annotations[shipper.AppSelectedByAnnotation]
	}
	return w.Resources.Permit(ctx, use, all...)
}

// permitRemoval refuses a deletion that removes objects from clusters, unless the user may place them. The garbage collector deletes what
// the author of an Application has given an owner.
func (w *Webhook) permitRemoval(ctx context.Context, req *admission.Request, old *shipper.Application) error {
	if protected.IsController(req.UserInfo.Username) {
		return nil
	}
	rels, err := w.releases(old)
	if err != nil {
		return err
	}
	var all []*resources.Selection
	removes := func(is *shipper.Resources, content map[string]string) error {
		if is == nil || is.Removal == shipper.RemovalNone {
			return nil
		}
		selection, err := w.Resources.Placed(ctx, old.Namespace, is, content)
		all = append(all, selection)
		return err
	}
	if err := removes(old.Spec.Template.Resources, nil); err != nil {
		return err
	}
	for _, rel := range strategy.Placing(rels) {
		if err := removes(rel.Spec.Environment.Resources, rel.Annotations); err != nil {
			return err
		}
	}
	if len(all) == 0 {
		return nil
	}
	return w.Resources.Permit(ctx, resources.Use{
		Who: req.UserInfo, Resource: resource, Name: old.Name, SelectedBy: old.Annotations[shipper.AppSelectedByAnnotation],
		What: "deleting it removes what it has placed",
	}, all...)
}

// resolveSelection finds what app selects, and refuses what may not be placed.
func (w *Webhook) resolveSelection(ctx context.Context, app *shipper.Application) (*resources.Selection, error) {
	selection, errs, err := w.Resources.Resolve(ctx, app)
	if err != nil {
		return nil, err
	}
	return selection, response.Invalidate(kind, app.Name, errs)
}

// checkSelector refuses a record of the user who chose the resources that neither the webhook nor the reconciler wrote: validation must not
// rely on an earlier mutation.
func (w *Webhook) checkSelector(ctx context.Context, req *admission.Request, app, old *shipper.Application) error {
	if req.UserInfo.Username == w.Guard.Reconciler {
		return nil
	}
	by, was := app.Annotations[shipper.AppSelectedByAnnotation], metaOf(old).Annotations[shipper.AppSelectedByAnnotation]
	own, err := rights.FormatSelector(req.UserInfo)
	if err != nil || by == own || by == was && !acts(app, old) {
		return err
	}
	may, err := w.Guard.MayStamp(ctx, req, protected.Application)
	if err != nil || may {
		return err
	}
	return response.Forbid(resource, app.Name, fmt.Sprintf("metadata.annotations[%s] is written by Shipper: it names the user who "+
		"changed spec last, user %q here", shipper.AppSelectedByAnnotation, req.UserInfo.Username))
}

// describeResources warns of a new selection that cannot be judged now, or that runs Pods in the management cluster as well.
func (w *Webhook) describeResources(ctx context.Context, req *admission.Request, a *response.Response, app, old *shipper.Application) {
	if !selects(app, old) || req.UserInfo.Username == w.Guard.Reconciler {
		return
	}
	selection, _, err := w.Resources.Resolve(ctx, app)
	if err != nil {
		return // it was admitted a moment ago
	}
	for _, warning := range append(selection.Warnings(), w.Resources.UnknownReady(ctx, app.Spec.Template.Resources.Ready)...) {
		a.Warn("%s", warning)
	}
}
