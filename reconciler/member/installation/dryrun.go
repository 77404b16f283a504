// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/member/applyset"
	"shipper.dev/shipper/reconciler/retry"
)

// tryInPlace has the API server try to write what changes at a later step, so that what it refuses there is known before the first one:
// fields that cannot change, quotas, policies of the cluster. Nothing is written. Of a target that was installed before, nothing is tried.
func (i *installer) tryInPlace(ctx context.Context, steps []step) error {
	if i.was {
		return nil
	}
	for _, s := range steps {
		if !s.item.InPlace || s.unknown {
			continue
		}
		err := applyset.Apply(ctx, i.member.Client(), s.in(s.item.Namespace), client.ForceOwnership, client.DryRunAll)
		if apierrors.IsInvalid(err) && s.live != nil {
			message := fmt.Sprintf("%s is there and cannot become what the chart says: %s. Keep the fields that cannot change by values of the "+
				"chart, or give it another name", i.called(s.item), retry.Brief(i.discreet(err)))
			return &problem{shipper.ObjectConflict, retry.Recheck, message}
		}
		if err != nil {
			return i.about("trying what "+i.called(s.item)+" becomes at its step", err)
		}
	}
	return nil
}
