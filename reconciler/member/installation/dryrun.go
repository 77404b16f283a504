// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/reconciler/member/applyset"
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
		if err != nil {
			return i.granted(s.item, i.refused(ctx, s, "trying what "+i.called(s.item)+" becomes at its step", err))
		}
	}
	return nil
}
