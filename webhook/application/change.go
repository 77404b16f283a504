// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// change is a write as blocks see it; app is nil on deletion, old on creation.
func (w *Webhook) change(
	ctx context.Context, req *admission.Request, app, old *shipper.Application,
) (block.Change, error) {
	around, err := w.around(app, old)
	if err != nil {
		return block.Change{}, err
	}
	before, err := w.template(old)
	if err != nil {
		return block.Change{}, err
	}
	after, err := w.template(app)
	if err != nil {
		return block.Change{}, err
	}
	c := around.Edit(before, after)
	if req.UserInfo.Username == w.Guard.Reconciler {
		// The reconciler writes the spec of an Application only to abort.
		return c.And(shipper.RolloutBlockAbort), nil
	}
	c.Matches = w.BlockCheck.Requested(ctx, req)
	return c, nil
}

// around is the Application as blocks see it; one of app and old may be nil.
func (w *Webhook) around(app, old *shipper.Application) (block.App, error) {
	some := app
	if some == nil {
		some = old
	}
	rels, err := w.releases(some)
	if err != nil {
		return block.App{}, err
	}
	out := w.State.Around(some.Name, rels)
	for _, a := range []*shipper.Application{app, old} {
		if a != nil {
			out.Labels = append(out.Labels, a.Labels)
		}
	}
	return out, nil
}

// releases are app's own that are not being deleted, oldest first.
func (w *Webhook) releases(app *shipper.Application) ([]*shipper.Release, error) {
	rels, err := w.State.Releases(key(app))
	if err != nil {
		return nil, err
	}
	ordered, _ := stamp.SortByGeneration(stamp.Own(app, rels))
	return slices.DeleteFunc(ordered, func(rel *shipper.Release) bool { return !rel.DeletionTimestamp.IsZero() }), nil
}

// template is that of app, with its content; nil if app is.
func (w *Webhook) template(app *shipper.Application) (*shipper.ReleaseEnvironment, error) {
	if app == nil {
		return nil, nil
	}
	out, err := w.withContent(app)
	if err != nil {
		return nil, err
	}
	return &out.Spec.Template, nil
}

// unresolved is change before the version of app's chart is known. The version may turn out to be that of an earlier Release,
// or one that blocks do not match; their conditions are evaluated once it is known.
func (w *Webhook) unresolved(
	ctx context.Context, req *admission.Request, app, old *shipper.Application,
) (block.Change, error) {
	c, err := w.change(ctx, req, app, old)
	if c.Matches = nil; err != nil || old == nil {
		return c, err
	}
	around, err := w.around(app, old)
	if err != nil {
		return c, err
	}
	for _, rel := range around.Releases {
		resolved := app.Spec.Template
		resolved.Chart.Version = rel.Spec.Environment.Chart.Version
		c = c.And(around.Edit(&old.Spec.Template, &resolved).Kinds...)
	}
	return c, nil
}
