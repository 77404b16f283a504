// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// Work reads one cluster and scales there what has to be scaled, and is ours.
func (w *Worker) Work(ctx context.Context, ct *shipper.CapacityTarget, want shipper.ClusterCapacityTarget) Outcome {
	member, err := w.fleet.Get(ctx, want.Name)
	if err != nil {
		return Outcome{want: want, err: err}
	}
	ctx, cancel := member.Context(ctx, fleet.WorkTimeout)
	defer cancel()
	if err := member.Claimed(ctx, ct.Namespace, ct.Labels[shipper.AppLabel]); err != nil {
		return Outcome{want: want, err: err}
	}
	seen := observe(ctx, member, ct, want)
	replicas, needed := seen.scale()
	if !needed {
		return outcome(seen)
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	deployment := seen.deployments[0].DeepCopy()
	if err := member.Consistent().Patch(ctx, deployment, patch, client.FieldOwner(shipper.FieldOwner)); err != nil {
		seen.err = fmt.Errorf("scaling Deployment %s to %d: %w", deployment.Name, replicas, err)
		return outcome(seen)
	}
	seen.scaled = true
	seen.err = member.WaitForCache(ctx, deployment) // the next pass would take the size before for the new one
	return outcome(seen)
}
