// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/member/inplace"
)

// scaledAtOnce is how many Deployments of a Release are scaled at the same time in a cluster.
const scaledAtOnce = 4

// Work reads one cluster and scales there what has to be scaled, and is ours. stake is what the Release has of workloads in place; nil if
// its objects are named by Release.
func (w *Worker) Work(
	ctx context.Context, ct *shipper.CapacityTarget, want shipper.ClusterCapacityTarget, stake *inplace.Stake,
) Outcome {
	member, err := w.fleet.Get(ctx, want.Name)
	if err != nil {
		return Outcome{want: want, err: err}
	}
	ctx, cancel := member.Context(ctx, fleet.WorkTimeout)
	defer cancel()
	if err := member.Claimed(ctx, ct.Namespace, ct.Labels[shipper.AppLabel]); err != nil {
		return Outcome{want: want, err: err}
	}
	if stake == nil {
		seen := observe(ctx, member, ct, want)
		seen.apply(ctx, member)
		return outcome(seen)
	}
	all := observeAll(ctx, member, ct, want)
	var scaling errgroup.Group
	scaling.SetLimit(scaledAtOnce)
	for i := range all.parts {
		scaling.Go(func() error { all.parts[i].apply(ctx, member); return nil })
	}
	_ = scaling.Wait() // errors are in the parts
	return all.outcome(stake)
}

// apply scales the Deployment, unless it has the number of replicas that it is to have.
func (s *observation) apply(ctx context.Context, member *fleet.Member) {
	replicas, needed := s.scale()
	if !needed {
		return
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	deployment := s.deployments[0].DeepCopy()
	if err := member.Consistent().Patch(ctx, deployment, patch, client.FieldOwner(shipper.FieldOwner)); err != nil {
		s.err = fmt.Errorf("scaling Deployment %s to %d: %w", deployment.Name, replicas, err)
		return
	}
	s.scaled = true
	s.err = member.WaitForCache(ctx, deployment) // the next pass would take the size before for the new one
}
