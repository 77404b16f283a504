// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// setOwners gives Releases and targets the owners that they lack. A user who deletes the Application and orphans them has these removed:
// then the Application is being deleted, as the API server itself says.
func (r *pass) setOwners(ctx context.Context, s *scope) error {
	all := s.history.Ownerless(s.app)
	if len(all) == 0 {
		return nil
	}
	var now shipper.Application
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(s.app), &now); err != nil {
		return client.IgnoreNotFound(err)
	}
	if now.UID != s.app.UID || now.DeletionTimestamp != nil {
		return nil
	}
	for _, o := range all {
		is, ok := o.DeepCopyObject().(client.Object)
		if !ok {
			continue
		}
		is.SetOwnerReferences(append(is.GetOwnerReferences(), o.Owner))
		err := r.client.Patch(ctx, is, onlyIfUnchanged(o.Object))
		if r.wrote(is); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("giving %T %s/%s its owner %s %s: %w", o.Object, o.GetNamespace(), o.GetName(), o.Owner.Kind, o.Owner.Name, err)
		}
	}
	return nil
}
