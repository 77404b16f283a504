// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/placement"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// change is what blocks ask of a write; app is nil on deletion, old on creation.
func (w *Webhook) change(
	ctx context.Context, req *admission.Request, app, old *shipper.Application,
) (block.Change, error) {
	var c block.Change
	for _, a := range []*shipper.Application{app, old} {
		if a != nil {
			c.Labels = append(c.Labels, a.Labels)
			c.Environments = append(c.Environments, &a.Spec.Template)
		}
	}
	some := app
	if some == nil {
		some = old
	}
	rels, err := w.Facts.Releases(key(some))
	if err != nil {
		return c, err
	}
	rels = stamp.Own(some, rels)
	newest := newestOf(rels)
	c.Clusters = func() []string { return w.clusters(app, newest) }
	switch {
	case app == nil:
	case req.UserInfo.Username == w.Guard.Reconciler:
		// It writes the spec of an Application only to take it back.
		c.Kinds = append(c.Kinds, shipper.RolloutBlockAbort)
	case block.Rollback(&app.Spec.Template, newest, rels):
		c.Kinds = append(c.Kinds, shipper.RolloutBlockRollback)
	}
	if req.UserInfo.Username != w.Guard.Reconciler {
		c.Matches = w.Gate.Asked(ctx, req)
	}
	return c, nil
}

// newestOf is the newest that is not being deleted; nil when there is none.
func newestOf(rels []*shipper.Release) *shipper.Release {
	ordered, _ := stamp.SortByGeneration(rels)
	for _, rel := range slices.Backward(ordered) {
		if rel.DeletionTimestamp.IsZero() {
			return rel
		}
	}
	return nil
}

// clusters are those that the newest Release has, and those that would be chosen for app; nil when none can be.
func (w *Webhook) clusters(app *shipper.Application, newest *shipper.Release) []string {
	var out []string
	if newest != nil {
		out = strategy.Clusters(newest)
	}
	if app == nil {
		return out
	}
	choice, err := placement.Choose(app.Name, app.Spec.Template.ClusterRequirements, w.Facts.Clusters())
	if err != nil {
		return nil
	}
	return slices.Concat(out, choice)
}
