// SPDX-License-Identifier: Apache-2.0

// Package envelope validates Envelopes: each manifest may be placed, and the author has the right to place it.
package envelope

import (
	"context"
	"maps"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/resources"
	"shipper.dev/shipper/webhook/response"
)

// Webhook validates Envelopes.
type Webhook struct {
	// Resources judges manifests.
	Resources *resources.Judge
}

// Validate validates an object before it is stored or deleted.
func (w *Webhook) Validate(ctx context.Context, req *admission.Request, a *response.Response) error {
	now, old, err := response.Decode[shipper.Envelope](req)
	if err != nil {
		return err
	}
	if req.Operation == admissionv1.Delete {
		if protected.IsController(req.UserInfo.Username) {
			return nil
		}
		return w.Resources.JudgeWithoutEnvelope(ctx, req.UserInfo, old)
	}
	if now.Namespace == "" {
		now.Namespace = req.Namespace
	}
	if old != nil && (!maps.Equal(now.Labels, old.Labels) || protected.OwnerAdded(&old.ObjectMeta, &now.ObjectMeta)) {
		if err := w.Resources.JudgeWithoutEnvelope(ctx, req.UserInfo, old); err != nil {
			return err
		}
	}
	if old != nil && equality.Semantic.DeepEqual(now.Spec, old.Spec) {
		return nil
	}
	if err := w.Resources.JudgeEnvelope(ctx, req.UserInfo, now, old); err != nil {
		return err
	}
	warnings, err := resources.JudgeDuplicates(now, old)
	for _, warning := range warnings {
		a.Warn("%s", warning)
	}
	return err
}
