// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/member/inplace"
	"shipper.dev/shipper/reconciler/member/traffic"
)

// scaledAtOnce is how many Deployments of a Release are scaled at the same time in a cluster.
const scaledAtOnce = 4

// Pass is the work on one target in one cluster: Observe begins it, Raise and Lower scale, and Outcome ends it.
// reconcilePods shifts traffic between Raise and Lower.
type Pass struct {
	// Target is what the pass is about.
	Target *shipper.CapacityTarget

	member *fleet.Member
	stake  *inplace.Stake
	seen   observations
}

// Observe reads one cluster, if it is ours. stake is what the Release has of workloads in place; nil if its objects are named by Release.
func (w *Worker) Observe(
	ctx context.Context, ct *shipper.CapacityTarget, want shipper.ClusterCapacityTarget, stake *inplace.Stake,
) *Pass {
	p := &Pass{Target: ct, stake: stake, seen: observations{want: want}}
	if p.member, p.seen.err = w.fleet.Get(ctx, want.Name); p.seen.err != nil {
		return p
	}
	ctx, cancel := p.member.Context(ctx, fleet.WorkTimeout)
	defer cancel()
	if p.seen.err = p.member.Claimed(ctx, ct.Namespace, ct.Labels[shipper.AppLabel]); p.seen.err != nil {
		return p
	}
	if stake == nil {
		p.seen.parts = []observation{observe(ctx, p.member, ct, want)}
		return p
	}
	p.seen = observeAll(ctx, p.member, ct, want)
	return p
}

// Release is the name of the Release.
func (p *Pass) Release() string { return releaseOf(p.Target) }

// Lacks reports whether Pods that the Release is asked to have are missing or not ready. Workloads in place do not count: their Pods
// are replaced one by one.
func (p *Pass) Lacks() bool {
	if p.seen.err != nil || p.seen.want.AsFound || p.seen.want.Percent == 0 {
		return false
	}
	if p.stake != nil && (!p.stake.Installed && p.seen.want.TotalReplicaCount > 0 || len(p.seen.missing(p.stake)) > 0) {
		return true
	}
	return slices.ContainsFunc(p.seen.parts, observation.lacks)
}

// Lowers reports whether Deployments are to have fewer Pods than they have.
func (p *Pass) Lowers() bool {
	return p.seen.err == nil && slices.ContainsFunc(p.seen.parts, func(s observation) bool {
		desired, needed := s.scale()
		return needed && desired < s.replicas()
	})
}

// Raise scales Deployments up that are to have more Pods.
func (p *Pass) Raise(ctx context.Context) {
	p.scale(ctx, func(s *observation) bool { return s.desired() > s.replicas() })
}

// Lower scales Deployments down that are to have fewer Pods, but takes no Pod that serves before others serve in its place.
func (p *Pass) Lower(ctx context.Context, serving traffic.Serving) {
	p.scale(ctx, func(s *observation) bool {
		if s.desired() >= s.replicas() {
			return false
		}
		s.keptServing = s.keepsServing(p.Release(), serving)
		return !s.keptServing
	})
}

// scale scales the Deployments that are chosen and do not have the number of replicas that they are to have.
func (p *Pass) scale(ctx context.Context, choose func(*observation) bool) {
	if p.seen.err != nil {
		return
	}
	ctx, cancel := p.member.Context(ctx, fleet.WorkTimeout)
	defer cancel()
	var scaling errgroup.Group
	scaling.SetLimit(scaledAtOnce)
	for i := range p.seen.parts {
		part := &p.seen.parts[i]
		if _, needed := part.scale(); needed && choose(part) {
			scaling.Go(func() error { part.apply(ctx, p.member); return nil })
		}
	}
	_ = scaling.Wait() // errors are in the parts
}

// Outcome is what came of the pass.
func (p *Pass) Outcome() Outcome {
	switch {
	case p.seen.err != nil:
		return Outcome{want: p.seen.want, err: p.seen.err}
	case p.stake == nil:
		return outcome(p.seen.parts[0])
	}
	return p.seen.outcome(p.stake)
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
