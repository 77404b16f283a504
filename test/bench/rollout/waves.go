// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/bench/table"
	"shipper.dev/shipper/test/bench/world"
)

// maxWave is the goal of Waves: how many times longer an upgrade in one wave takes than in lock-step. They do the same work.
const maxWave = 1.3

// Waves is one Application on many clusters, upgraded in a wave that has all of them, beside one that is upgraded in lock-step, and beside
// the program written by hand. No Pod runs there, as in Wide.
type Waves struct {
	// Clusters is how many there are.
	Clusters int
	// Rounds is how many upgrades are measured of each.
	Rounds int
}

// Run measures. All times are given to samples.
func (o Waves) Run(ctx context.Context, samples io.Writer) (lines []table.Line, err error) {
	w, err := world.Begin(ctx, world.Options{Clusters: o.Clusters, Podless: true})
	defer func() { err = errors.Join(err, w.End()) }()
	if err != nil {
		return nil, err
	}
	lock, err := newRollout(ctx, w, "lock-step", o.Clusters, 0)
	if err != nil {
		return nil, fmt.Errorf("rolling out in lock-step: %w", err)
	}
	wave, err := newRollout(ctx, w, "wave", o.Clusters, 0)
	if err != nil {
		return nil, fmt.Errorf("rolling out in a wave: %w", err)
	}
	wave.waves = []shipper.Wave{{Name: "all", MaxConcurrency: ptr.To(intstr.FromString("100%"))}}
	hand, err := NewHand(ctx, w, "floor-waves", o.Clusters, 0)
	if err != nil {
		return nil, fmt.Errorf("rolling out by hand: %w", err)
	}
	sides := []struct {
		name string
		do   func(context.Context) (time.Duration, error)
	}{
		{"wave", func(ctx context.Context) (time.Duration, error) {
			return timed(ctx, [][]func(context.Context) error{wave.steps()})
		}},
		{"lock-step", func(ctx context.Context) (time.Duration, error) {
			return timed(ctx, [][]func(context.Context) error{lock.steps()})
		}},
		{"floor", hand.Upgrade},
	}
	took := make([][]time.Duration, len(sides))
	for round := range o.Rounds + 1 { // the first warms up
		for turn := range sides {
			i := (round + turn) % len(sides)
			d, err := sides[i].do(ctx)
			if err != nil {
				return nil, fmt.Errorf("upgrading, %s: %w", sides[i].name, err)
			}
			if round > 0 {
				fmt.Printf("%s of %d clusters, upgrade %d: %s\n", sides[i].name, o.Clusters, round, d.Round(time.Millisecond))
				took[i] = append(took[i], d)
			}
		}
	}
	for i, side := range sides {
		if err := table.WriteSamples(samples, fmt.Sprintf("Waves/clusters=%d/side=%s", o.Clusters, side.name), took[i]); err != nil {
			return nil, err
		}
	}
	ours, beside, floor := table.Median(took[0]), table.Median(took[1]), table.Median(took[2])
	return []table.Line{
		{Row: "waves", Of: fmt.Sprintf("an upgrade in a wave of %d clusters", o.Clusters), Ours: ours, Floor: floor, Unit: table.Seconds},
		{Row: "waves", Of: "the same in lock-step", Ours: beside, Floor: floor, Unit: table.Seconds},
		{Row: "waves", Of: "a wave (floor: lock-step)", Ours: ours, Floor: beside, Unit: table.Seconds, Most: table.Goal(maxWave)},
	}, nil
}
