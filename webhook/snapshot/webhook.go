// SPDX-License-Identifier: Apache-2.0

// Package snapshot refuses ResourceSnapshots of users: their content is placed on clusters without a further check.
package snapshot

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/response"
)

// metadata has no keys: only who may write the kind is asked.
var metadata = protected.Metadata{Kind: "ResourceSnapshot", Resource: "resourcesnapshots"}

// Webhook refuses writes of ResourceSnapshots.
type Webhook struct {
	Guard *protected.Guard
}

// Validate admits the reconciler, and users who may stamp: they restore backups. RBAC alone limits deletions.
func (w *Webhook) Validate(ctx context.Context, req *admission.Request, _ *response.Response) error {
	if req.Operation == admissionv1.Delete {
		return nil
	}
	may, err := w.Guard.MayStamp(ctx, req, metadata)
	if err != nil || may {
		return err
	}
	return response.Forbid(metadata.Resource, req.Name, fmt.Sprintf(
		"ResourceSnapshots are made by Shipper from what an Application selects (user %q does not have the verb stamp on %s.%s)",
		req.UserInfo.Username, metadata.Resource, shipper.GroupName))
}
