// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// work reads one cluster and scales there what has to be scaled, and is ours.
func (r *Reconciler) work(ctx context.Context, ct *shipper.CapacityTarget, want shipper.ClusterCapacityTarget) observation {
	member, err := r.fleet.Get(ctx, want.Name)
	if err != nil {
		return observation{want: want, err: err}
	}
	ctx, cancel := member.Context(ctx, fleet.WorkTimeout)
	defer cancel()
	if err := member.Claimed(ctx, ct.Namespace, ct.Labels[shipper.AppLabel]); err != nil {
		return observation{want: want, err: err}
	}
	seen := observe(ctx, member, ct, want)
	seen.late = r.isLate(member.Session(), seen.deployments)
	replicas, needed := seen.scale()
	if !needed {
		return seen
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	deployment := seen.deployments[0].DeepCopy()
	if err := member.Client().Patch(ctx, deployment, patch, client.FieldOwner(shipper.FieldOwner)); err != nil {
		seen.err = fmt.Errorf("scaling Deployment %s to %d: %w", deployment.Name, replicas, err)
		return seen
	}
	r.written.Store(deployment.UID, scaling{member.Session(), deployment.Generation})
	seen.scaled = true
	return seen
}

// scaling is a write of spec.replicas.
type scaling struct {
	session    uint64 // of the fleet, in which it was written
	generation int64  // of the Deployment since
}

// isLate tells whether the cache shows a Deployment as it was before it was last scaled here: one that seems to be as it
// should may be about to change. The cache of another session was filled later, and a cluster that was put back to an
// earlier time never shows what was written after it.
func (r *Reconciler) isLate(session uint64, deployments []appsv1.Deployment) bool {
	late := false
	for _, d := range deployments {
		noted, ok := r.written.Load(d.UID)
		if !ok {
			continue
		}
		if last, _ := noted.(scaling); last.session == session && d.Generation < last.generation {
			late = true
		} else {
			r.written.Delete(d.UID)
		}
	}
	return late
}
