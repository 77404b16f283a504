// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/rights"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/resources"
	"shipper.dev/shipper/webhook/response"
)

// permitRemoval refuses the deletion of a Release that places resources, unless the user may place them and what comes back instead. The
// abort of a rollout that is not complete goes back to what ran: it is admitted while the user whose rights the Application has may still
// place that.
func (w *Webhook) permitRemoval(
	ctx context.Context, req *admission.Request, a *response.Response, app block.App, rel *shipper.Release,
) error {
	placing := strategy.Placing(app.Releases)
	at := slices.IndexFunc(placing, func(other *shipper.Release) bool { return other.Name == rel.Name })
	if at < 0 || w.reconciler(req) || protected.IsController(req.UserInfo.Username) {
		return nil
	}
	var previous *shipper.Release
	if at == len(placing)-1 { // otherwise a newer one stays
		previous = app.Previous()
	}
	removed, err := w.placed(ctx, rel)
	if err != nil {
		return err
	}
	restored, err := w.placed(ctx, previous)
	if err != nil || len(removed)+len(restored) == 0 {
		return err
	}
	meta, err := w.State.Application(ctx, owner(rel))
	if err != nil {
		return err
	}
	use := resources.Use{Who: req.UserInfo, Resource: resource, Name: rel.Name, What: "deleting it changes what is placed"}
	if meta != nil {
		use.SelectedBy = meta.Annotations[shipper.AppSelectedByAnnotation]
	}
	refusal := w.Resources.Permit(ctx, use, slices.Concat(removed, restored)...)
	author, known := rights.ParseSelector(use.SelectedBy)
	if !isForbidden(refusal) || previous == nil || strategy.Complete(rel) || !known {
		return refusal
	}
	use.Who = author
	if err := w.Resources.Permit(ctx, use, restored...); isForbidden(err) {
		return refusal
	} else if err != nil {
		return err
	}
	a.Warn("you may not place all of it: this is admitted because Release %s is not complete, and what ran before comes back", rel.Name)
	return nil
}

// placed is what a Release with resources selects; empty for nil and for a chart.
func (w *Webhook) placed(ctx context.Context, rel *shipper.Release) ([]*resources.Selection, error) {
	if rel == nil || rel.Spec.Environment.Resources == nil {
		return nil, nil
	}
	selection, err := w.Resources.Placed(ctx, rel.Namespace, rel.Spec.Environment.Resources, rel.Annotations)
	return []*resources.Selection{selection}, err
}

func isForbidden(err error) bool {
	var refusal *response.Refusal
	return errors.As(err, &refusal) && refusal.Decision == response.Forbidden
}
