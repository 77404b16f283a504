// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/bench/table"
	"shipper.dev/shipper/test/bench/world"
)

// The goals of BlueGreen.
const (
	maxOfCanary  = 0.4 // of an upgrade by hand in three steps
	maxBlueGreen = 14  // requests to an application cluster
)

// BlueGreen is one Application with a preview Service on one cluster: its preview, then a switch of all traffic and the end of the old
// Pods. Beside it are the same by hand, and the upgrade in three steps by hand, which labels Pods.
type BlueGreen struct {
	// Rounds is how many upgrades of each side.
	Rounds int
	// Replicas is how many Pods the workload has.
	Replicas int32
}

// Run measures, and prints what was asked for in an upgrade to out. All times are given to samples.
func (o BlueGreen) Run(ctx context.Context, out, samples io.Writer) (lines []table.Line, err error) {
	w, err := world.Begin(ctx, world.Options{Clusters: 1})
	defer func() { err = errors.Join(err, w.End()) }()
	if err != nil {
		return nil, err
	}
	steps := []shipper.RolloutStrategyStep{world.Step("preview", 100, 100, 100, 0), world.Step("full on", 0, 100, 0, 100)}
	steps[0].Gate = &shipper.StepGate{}
	ours, err := newRolloutOf(ctx, w, "blue-green", steps, "blue-green", 1, o.Replicas)
	if err != nil {
		return nil, err
	}
	hand, err := newFloor(ctx, w.Clusters[0], "floor-blue-green", o.Replicas)
	if err != nil {
		return nil, err
	}
	if err := hand.point(ctx, 0); err != nil {
		return nil, err
	}
	r, err := compare(ctx, w, "blue/green", ours, func() [][]func(context.Context) error {
		return [][]func(context.Context) error{hand.switches()}
	}, o.Rounds)
	if err != nil {
		return nil, fmt.Errorf("upgrading by blue/green: %w", err)
	}
	fmt.Fprintln(out, "what Shipper asked for in an upgrade by blue/green:")
	r.requests.Explain(out)
	canary, err := o.byCanary(ctx, w)
	if err != nil {
		return nil, fmt.Errorf("upgrading by hand in three steps: %w", err)
	}
	for side, times := range map[string][]time.Duration{"shipper": r.ours, "floor": r.floor, "canary-floor": canary} {
		if err := table.WriteSamples(samples, "BlueGreen/side="+side, times); err != nil {
			return nil, err
		}
	}
	return append(r.lines("bluegreen", "", "an upgrade", goals{management: maxManagement, application: maxBlueGreen}),
		table.Line{Row: "bluegreen", Of: "an upgrade (floor: by hand in three steps)", Ours: table.Median(r.ours), Floor: table.Median(canary),
			Unit: table.Seconds, Most: table.Goal(maxOfCanary)}), nil
}

// byCanary is how long upgrades by hand in three steps take.
func (o BlueGreen) byCanary(ctx context.Context, w *world.World) (took []time.Duration, err error) {
	hand, err := NewHand(ctx, w, "floor-canary", 1, o.Replicas)
	if err != nil {
		return nil, err
	}
	for range o.Rounds + 1 { // the first warms up
		d, err := hand.Upgrade(ctx)
		if err != nil {
			return nil, err
		}
		took = append(took, d)
	}
	return took[1:], nil
}
