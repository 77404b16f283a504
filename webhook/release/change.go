// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// change is what blocks ask of a write of rel: whatever happens to a Release that rolls back belongs to the rollback.
func (w *Webhook) change(ctx context.Context, req *admission.Request, rel *shipper.Release) (block.Change, error) {
	c := block.OfRelease(rel)
	rels, err := w.Facts.Releases(owner(rel))
	if err != nil {
		return c, err
	}
	if block.Rollback(&rel.Spec.Environment, rel, rels) {
		c = c.And(shipper.RolloutBlockRollback)
	}
	if req.UserInfo.Username != w.Guard.Reconciler {
		c.Matches = w.Gate.Asked(ctx, req)
	}
	return c, nil
}

// moves is as what a new targetStep may pass. The reconciler moves it only when it aborts.
func (w *Webhook) moves(req *admission.Request, rel, old *shipper.Release) []shipper.RolloutBlockChange {
	switch {
	case req.UserInfo.Username == w.Guard.Reconciler:
		return []shipper.RolloutBlockChange{shipper.RolloutBlockAbort}
	case rel.Spec.TargetStep < old.Spec.TargetStep:
		return []shipper.RolloutBlockChange{shipper.RolloutBlockRetreat}
	}
	return nil
}
