// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/blockcheck"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/response"
)

// guarded is the metadata of a Release that only Shipper may change, with all its labels: installed objects get them, and
// removing one that its Application had would take the Release out of the scope of a block.
func guarded(of protected.Metadata, old, rel *shipper.Release) protected.Metadata {
	return of.AllLabels(old.Labels, rel.Labels)
}

// complete restores the stamp and the owner that an update left out, normalises the override and records the user who added it.
// It removes overrides of deleted blocks from Releases that Shipper creates, which copy them from the Application, and from
// Releases that are moved.
func (w *Webhook) complete(
	ctx context.Context, req *admission.Request, a *response.Response, rel, old *shipper.Release,
) error {
	if old != nil {
		if err := w.Guard.Keep(ctx, req, a, guarded(protected.Release, old, rel), &old.ObjectMeta, &rel.ObjectMeta); err != nil {
			return err
		}
		w.note(req, rel, old)
	}
	if old != nil {
		if err := w.ownerOf(old).Restore(ctx, &old.ObjectMeta, &rel.ObjectMeta); err != nil {
			return err
		}
	}
	blockcheck.Normalise(&rel.ObjectMeta)
	byReconciler := w.reconciler(req)
	if !byReconciler { // the reconciler copies the records of the Application, and removes obsolete ones
		var before *metav1.ObjectMeta
		if old != nil {
			before = &old.ObjectMeta
		}
		if err := w.BlockCheck.Stamp(ctx, req.UserInfo.Username, &rel.ObjectMeta, before); err != nil {
			return err
		}
	}
	made := old == nil && byReconciler
	moved := old != nil && isMoved(rel, old) &&
		blockcheck.SameOverride(rel.Annotations, old.Annotations)
	if made || moved {
		return w.BlockCheck.Prune(ctx, a, &rel.ObjectMeta)
	}
	return nil
}
