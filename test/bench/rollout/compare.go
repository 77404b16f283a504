// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"time"

	"shipper.dev/shipper/test/bench/world"
)

// patience is how long one upgrade may take before it is given up.
const patience = 3 * time.Minute

// result is what was measured of two sides.
type result struct {
	ours, floor []time.Duration // whole upgrades: the sum of the times of their steps
	requests    world.Requests  // of ours, for one upgrade
	// late and floorLate are how often Kubernetes wrote EndpointSlices a second late, in upgrades of ours and of the floor's.
	late, floorLate int
}

// onClusters compares upgrades by canary on n clusters.
func onClusters(ctx context.Context, w *world.World, n int, o Options) (result, error) {
	namespace := fmt.Sprintf("on-%d", n)
	ours, err := newRollout(ctx, w, namespace, n, o.Replicas)
	if err != nil {
		return result{}, err
	}
	hand, err := NewHand(ctx, w, "floor-"+namespace, n, o.Replicas)
	if err != nil {
		return result{}, err
	}
	return compare(ctx, w, fmt.Sprintf("%d clusters", n), ours, hand.steps, o.Rounds)
}

// compare upgrades on both sides, and counts what ours asks of API servers. hand are the steps of the floor's next upgrade.
func compare(ctx context.Context, w *world.World, what string, ours *rollout, hand func() [][]func(context.Context) error, rounds int,
) (r result, err error) {
	for round := range rounds + 1 { // the first warms up
		before, err := w.Count()
		if err != nil {
			return r, err
		}
		var took [2]time.Duration // ours, the floor's
		var late [2]int
		sides := [2]func() [][]func(context.Context) error{
			func() [][]func(context.Context) error { return [][]func(context.Context) error{ours.steps()} },
			hand,
		}
		for turn := range 2 {
			side := (round + turn) % 2
			if took[side], late[side], err = measured(ctx, w, sides[side]()); err != nil {
				return r, err
			}
		}
		if round == 0 {
			continue
		}
		fmt.Printf("%s, upgrade %d: ours %s, floor %s\n", what, round, took[0].Round(time.Millisecond), took[1].Round(time.Millisecond))
		r.ours, r.floor = append(r.ours, took[0]), append(r.floor, took[1])
		r.late, r.floorLate = r.late+late[0], r.floorLate+late[1]
		after, err := w.Count()
		if err != nil {
			return r, err
		}
		r.requests = after.Minus(before)
	}
	return r, nil
}

// measured is how long an upgrade took, and how often Kubernetes wrote EndpointSlices a second late meanwhile.
func measured(ctx context.Context, w *world.World, clusters [][]func(context.Context) error) (took time.Duration, late int, err error) {
	before, err := w.SlicesLate()
	if err != nil {
		return 0, 0, err
	}
	if took, err = timed(ctx, clusters); err != nil {
		return 0, 0, err
	}
	after, err := w.SlicesLate()
	return took, after - before, err
}

// timed goes through steps, in all clusters side by side: no step begins before all clusters have ended the one before.
func timed(ctx context.Context, clusters [][]func(context.Context) error) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	for step := range clusters[0] {
		if err := world.InParallel(len(clusters), func(i int) error { return clusters[i][step](ctx) }); err != nil {
			return 0, fmt.Errorf("step %d: %w", step, err)
		}
	}
	return time.Since(began), nil
}
