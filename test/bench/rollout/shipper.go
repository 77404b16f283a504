// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/bench/world"
)

// rollout is an Application of Shipper's, on the first clusters.
type rollout struct {
	world    *world.World
	sight    *world.Sight
	key      client.ObjectKey
	strategy []shipper.RolloutStrategyStep
	waves    []shipper.Wave // none: lock-step
	upgrades int
}

// newRollout makes the Application and its first Release, with all of its capacity and traffic.
func newRollout(ctx context.Context, w *world.World, namespace string, clusters int, replicas int32) (*rollout, error) {
	return newRolloutOf(ctx, w, "test-nginx", threeSteps, namespace, clusters, replicas)
}

// newRolloutOf is newRollout with another chart and strategy.
func newRolloutOf(ctx context.Context, w *world.World, chart string, strategy []shipper.RolloutStrategyStep, namespace string, clusters int,
	replicas int32,
) (*rollout, error) {
	if err := w.MakeNamespace(ctx, namespace, clusters); err != nil {
		return nil, err
	}
	sight, err := w.Look(ctx)
	if err != nil {
		return nil, err
	}
	app := w.Application(namespace, clusters, replicas, world.Step("full on", 0, 100, 0, 100))
	app.Spec.Template.Chart.Name = chart
	r := &rollout{world: w, sight: sight, key: client.ObjectKeyFromObject(app), strategy: strategy}
	if err := w.Management.Create(ctx, app); err != nil {
		return nil, err
	}
	return r, r.awaitStep(ctx, 0)
}

// threeSteps is the strategy of upgrades by canary: staging, 50/50, full on.
var threeSteps = []shipper.RolloutStrategyStep{
	world.Step("staging", 100, 1, 100, 0), world.Step("50/50", 50, 50, 50, 50), world.Step("full on", 0, 100, 0, 100),
}

// steps are those of an upgrade to the next version.
func (r *rollout) steps() []func(context.Context) error {
	out := []func(context.Context) error{r.upgrade}
	for step := range r.strategy[1:] {
		out = append(out, func(ctx context.Context) error { return r.advance(ctx, int32(step+1)) })
	}
	return out
}

// upgrade edits the template, and waits until the Release this makes has achieved its first step.
func (r *rollout) upgrade(ctx context.Context) error {
	r.upgrades++
	strategy := shipper.RolloutStrategy{Steps: r.strategy, Waves: r.waves}
	if err := r.world.UpgradeBy(ctx, r.key, r.upgrades, strategy); err != nil {
		return err
	}
	return r.awaitStep(ctx, 0)
}

// advance asks for a step and waits until it is achieved.
func (r *rollout) advance(ctx context.Context, step int32) error {
	if err := r.world.Advance(ctx, r.sight.Newest(r.key), step); err != nil {
		return err
	}
	return r.awaitStep(ctx, step)
}

// awaitStep waits until the newest Release has achieved a step.
func (r *rollout) awaitStep(ctx context.Context, step int32) error {
	return r.sight.Until(ctx, []client.ObjectKey{r.key}, func(_ *shipper.Application, rel *shipper.Release) bool {
		return world.Achieved(rel, r.upgrades, step)
	})
}
