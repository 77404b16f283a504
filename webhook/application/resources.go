// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/resources"
	"shipper.dev/shipper/webhook/response"
)

// pinsRefused is why users may not set pins: a digest is content that nobody was asked about.
const pinsRefused = "pins are written by Shipper: leave them out"

// completeResources fills in what a template with resources may leave out: an empty strategy, and the pins, which manifests do not contain.
// Pins go with the selectors that they were taken for. A user who sets others needs the verb stamp.
func (w *Webhook) completeResources(ctx context.Context, req *admission.Request, app, old *shipper.Application) error {
	now, before := &app.Spec.Template, &shipper.ReleaseEnvironment{}
	if old != nil {
		before = &old.Spec.Template
	}
	given, stored := now.Pins.Digest(), before.Pins.Digest()
	if now.Resources == nil {
		if given == stored { // left there by an apply that replaces resources by a chart
			now.Pins = nil
		}
		return nil
	}
	if now.Strategy == nil {
		now.Strategy = &shipper.RolloutStrategy{}
	}
	same := stamp.SameSelectors(now.Resources, before.Resources)
	switch {
	case req.UserInfo.Username == w.Guard.Reconciler:
		return nil
	case given == "" && same:
		now.Pins = before.Pins.DeepCopy()
	case given == "":
		now.Pins = nil
	case given != stored:
		return w.permitPins(ctx, req, app)
	case !same:
		now.Pins = nil
	}
	return nil
}

// permitPins refuses pins of users who may not stamp.
func (w *Webhook) permitPins(ctx context.Context, req *admission.Request, app *shipper.Application) error {
	may, err := w.Guard.MayStamp(ctx, req, protected.Application)
	if err != nil || may {
		return err
	}
	return response.Forbid(resource, app.Name, fmt.Sprintf("spec.template.pins: %s (user %q does not have the verb stamp on %s.%s)",
		pinsRefused, req.UserInfo.Username, resource, shipper.GroupName))
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

// placesOtherwise reports whether a write changes where or how the same objects are placed, or what becomes of them.
func placesOtherwise(app, old *shipper.Application) bool {
	return old != nil && app.Spec.Template.Resources != nil && !samePlacing(&app.Spec.Template, &old.Spec.Template)
}

// samePlacing reports whether two templates place the same objects in the same way on the same clusters.
func samePlacing(a, b *shipper.ReleaseEnvironment) bool {
	return equality.Semantic.DeepEqual(a.Resources, b.Resources) && equality.Semantic.DeepEqual(a.Apply, b.Apply) &&
		equality.Semantic.DeepEqual(a.ClusterRequirements, b.ClusterRequirements)
}

// stampSelector records the user who chooses what is placed. A Release that is restored by the reconciler keeps the record.
func (w *Webhook) stampSelector(req *admission.Request, app, old *shipper.Application) error {
	key := shipper.AppSelectedByAnnotation
	if app.Spec.Template.Resources == nil {
		delete(app.Annotations, key)
		return nil
	}
	_, restored := app.Annotations[key]
	if !selects(app, old) || req.UserInfo.Username == w.Guard.Reconciler || old == nil && restored {
		return nil // guard admits the annotation on creation only from users who may stamp
	}
	text, err := resources.FormatSelector(req.UserInfo)
	if err != nil {
		return err
	}
	response.Annotate(&app.ObjectMeta, key, text)
	return nil
}

// takesContent reports whether a write is the reconciler's patch of the pins, after it has taken the content. An abort may change nothing
// but pins, too: it restores a Release.
func (w *Webhook) takesContent(req *admission.Request, app, old *shipper.Application) bool {
	if req.UserInfo.Username != w.Guard.Reconciler || app == nil || old == nil || app.Spec.Template.Resources == nil {
		return false
	}
	other := app.Spec.Template
	other.Pins = old.Spec.Template.Pins
	return app.Spec.Template.Pins.Digest() != old.Spec.Template.Pins.Digest() && stamp.SameEnvironment(&other, &old.Spec.Template) &&
		!w.restored(app, old)
}

// placedBefore reports whether a Release of app has the same selectors and content, and whether it placed them in the same way. To go back
// to such a one needs no right to place.
func (w *Webhook) placedBefore(app *shipper.Application) (content, all bool, err error) {
	now := &app.Spec.Template
	if now.Pins.Digest() == "" {
		return false, false, nil
	}
	rels, err := w.releases(app)
	for _, rel := range rels {
		is := &rel.Spec.Environment
		if is.Pins.Digest() == now.Pins.Digest() && stamp.SameSelectors(is.Resources, now.Resources) {
			content, all = true, all || samePlacing(is, now)
		}
	}
	return content, all, err
}

// judgeResources refuses resources that may not be placed, that the user may not place, or that Shipper may not read. It judges only what a
// write changes. The template must be valid.
func (w *Webhook) judgeResources(ctx context.Context, req *admission.Request, app, old *shipper.Application) error {
	now := app.Spec.Template.Resources
	if now == nil {
		return nil
	}
	var before *shipper.Resources
	if old != nil {
		before = old.Spec.Template.Resources
	}
	errs, err := resources.ValidateReady(ctx, now, before)
	if err != nil {
		return err
	}
	if err := response.Invalidate(kind, app.Name, errs); err != nil {
		return err
	}
	if w.takesContent(req, app, old) {
		selection, err := w.resolveSelection(ctx, app)
		if err != nil {
			return err
		}
		return w.permitContentTaken(ctx, app, selection)
	}
	known, whole, err := w.placedBefore(app)
	if err != nil {
		return err
	}
	if err := w.checkForgery(ctx, req, app, old, known); err != nil {
		return err
	}
	chooses := selects(app, old)
	if !chooses && !placesOtherwise(app, old) || whole && !resourcesRefreshWanted(app, old) {
		return nil
	}
	selection, err := w.resolveSelection(ctx, app)
	if err != nil {
		return err
	}
	if err := w.Resources.Permit(ctx, req.UserInfo, selection, false); err != nil {
		return err
	}
	if !chooses {
		return nil
	}
	errs, err = w.Resources.Readable(ctx, selection)
	if err != nil {
		return err
	}
	return response.Invalidate(kind, app.Name, errs)
}

// permitContentTaken refuses the reconciler's pin when the user who selected may not place it any more. A pin that only asks is never
// stored: who gets no refusal of it has not reached this webhook.
func (w *Webhook) permitContentTaken(ctx context.Context, app *shipper.Application, selection *resources.Selection) error {
	if err := w.Resources.PermitStored(ctx, app.Annotations[shipper.AppSelectedByAnnotation], selection); err != nil {
		return err
	}
	if app.Spec.Template.Pins.Digest() == shipper.AskingPin {
		return resources.Allowed(app.Name)
	}
	return nil
}

// resolveSelection finds what app selects, and refuses what may not be placed.
func (w *Webhook) resolveSelection(ctx context.Context, app *shipper.Application) (*resources.Selection, error) {
	selection, errs, err := w.Resources.Resolve(ctx, app)
	if err != nil {
		return nil, err
	}
	return selection, response.Invalidate(kind, app.Name, errs)
}

// checkForgery refuses pins and a record of the user that neither the webhook nor the reconciler wrote: validation must not rely on an
// earlier mutation. known pins are those of a Release.
func (w *Webhook) checkForgery(ctx context.Context, req *admission.Request, app, old *shipper.Application, known bool) error {
	if req.UserInfo.Username == w.Guard.Reconciler {
		return nil
	}
	before := ""
	if old != nil {
		before = old.Spec.Template.Pins.Digest()
	}
	if pin := app.Spec.Template.Pins.Digest(); pin != "" && !known && (pin != before || !stamp.SameSelectors(
		app.Spec.Template.Resources, old.Spec.Template.Resources)) {
		if err := w.permitPins(ctx, req, app); err != nil {
			return err
		}
	}
	by, was := app.Annotations[shipper.AppSelectedByAnnotation], metaOf(old).Annotations[shipper.AppSelectedByAnnotation]
	own, err := resources.FormatSelector(req.UserInfo)
	if err != nil || by == own || by == was && !selects(app, old) {
		return err
	}
	may, err := w.Guard.MayStamp(ctx, req, protected.Application)
	if err != nil || may {
		return err
	}
	return response.Forbid(resource, app.Name, fmt.Sprintf("metadata.annotations[%s] is written by Shipper: it names the user who chooses "+
		"spec.template.resources, user %q here", shipper.AppSelectedByAnnotation, req.UserInfo.Username))
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

// awaitsContent reports whether there is no Release of a template yet because its content has not been taken.
func awaitsContent(env *shipper.ReleaseEnvironment) bool {
	return env.Resources != nil && env.Pins.Digest() == ""
}
