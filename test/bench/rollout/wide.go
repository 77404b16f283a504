// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"shipper.dev/shipper/test/bench/table"
	"shipper.dev/shipper/test/bench/world"
)

// The goals of Wide.
const (
	maxWidth = 1.3 // of how much longer a step is on all clusters than on one, to how much longer it is by hand
	maxIdle  = 5   // MiB for each cluster with nothing in it
)

// Wide is one Application on one cluster and on many, beside the program written by hand on as many: how much longer that takes on many
// is what the machine does, which all of them share. No Pod runs there, so that what is measured is what Shipper and the API servers do:
// kubelets and schedulers of so many clusters would keep the machine from anything else.
type Wide struct {
	// Clusters is how many there are.
	Clusters int
	// Rounds is how many upgrades are measured on one cluster, and on all.
	Rounds int
	// Profiles is a folder for profiles of Shipper. Empty: none are taken.
	Profiles string
}

// upgraded is what upgrades on a number of clusters took.
type upgraded struct {
	*rollout
	hand      *Hand
	clusters  int
	took      []time.Duration
	floor     []time.Duration
	processor time.Duration // that Shipper's reconciler used, in all
}

// Run measures. All times are given to samples.
func (o Wide) Run(ctx context.Context, samples io.Writer) (lines []table.Line, err error) {
	w, err := world.Begin(ctx, world.Options{Clusters: o.Clusters, Joined: 1, Podless: true, Profiles: o.Profiles})
	defer func() { err = errors.Join(err, w.End()) }()
	if err != nil {
		return nil, err
	}
	if lines, err = o.idle(ctx, w); err != nil {
		return lines, err
	}
	one, all := &upgraded{clusters: 1}, &upgraded{clusters: o.Clusters}
	for _, u := range []*upgraded{one, all} {
		if u.rollout, err = newRollout(ctx, w, fmt.Sprintf("on-%d", u.clusters), u.clusters, 0); err != nil {
			return lines, fmt.Errorf("rolling out on %d clusters: %w", u.clusters, err)
		}
		if u.hand, err = NewHand(ctx, w, fmt.Sprintf("floor-on-%d", u.clusters), u.clusters, 0); err != nil {
			return lines, fmt.Errorf("rolling out by hand on %d clusters: %w", u.clusters, err)
		}
	}
	for round := range o.Rounds + 1 { // the first warms up
		for _, u := range []*upgraded{one, all} {
			if err := u.measure(ctx, w, round > 0); err != nil {
				return lines, fmt.Errorf("upgrading on %d clusters: %w", u.clusters, err)
			}
		}
	}
	for _, u := range []*upgraded{one, all} {
		for side, times := range map[string][]time.Duration{"shipper": u.took, "floor": u.floor} {
			if err := table.WriteSamples(samples, fmt.Sprintf("Wide/clusters=%d/side=%s", u.clusters, side), times); err != nil {
				return lines, err
			}
		}
	}
	lines = append(lines, o.lines(one, all)...)
	return lines, w.Heaps(ctx, "wide")
}

// idle is the memory of each cluster that has nothing in it.
func (o Wide) idle(ctx context.Context, w *world.World) ([]table.Line, error) {
	one, err := w.AtRest(ctx, world.Collected)
	if err != nil {
		return nil, err
	}
	if err := w.Join(ctx, 1, o.Clusters); err != nil {
		return nil, err
	}
	all, err := w.AtRest(ctx, world.Collected)
	if err != nil {
		return nil, err
	}
	if err := w.Heaps(ctx, "idle"); err != nil {
		return nil, err
	}
	more, each := all.Memory.Minus(one.Memory), float64(o.Clusters-1)*(1<<20)
	return append(all.Lines(fmt.Sprintf("wide, %d clusters with nothing in them", o.Clusters), maxCores),
		table.Line{Row: "wide", Of: fmt.Sprintf("memory for each of %d clusters", o.Clusters), Ours: float64(more.Resident) / each,
			Unit: table.MiB, Most: table.Goal(maxIdle)},
		table.Line{Row: "wide", Of: "of it in use", Ours: float64(more.Live) / each, Unit: table.MiB}), nil
}

// measure goes through one upgrade, and one by hand.
func (u *upgraded) measure(ctx context.Context, w *world.World, counts bool) error {
	before, _, err := world.Usage(w.Pod.Reconciler.Pid())
	if err != nil {
		return err
	}
	took, err := timed(ctx, [][]func(context.Context) error{u.steps()})
	if err != nil {
		return err
	}
	after, _, err := world.Usage(w.Pod.Reconciler.Pid())
	if err != nil {
		return err
	}
	floor, err := u.hand.Upgrade(ctx)
	if counts {
		fmt.Printf("%d clusters: an upgrade took %s, by hand %s\n", u.clusters, took.Round(time.Millisecond), floor.Round(time.Millisecond))
		u.took, u.floor, u.processor = append(u.took, took), append(u.floor, floor), u.processor+after-before
	}
	return err
}

// lines of the table.
func (o Wide) lines(one, all *upgraded) []table.Line {
	step := func(took []time.Duration) float64 { return table.Median(took) / float64(len(threeSteps)) }
	each := func(u *upgraded) float64 { return u.processor.Seconds() / float64(len(u.took)) }
	return []table.Line{
		{Row: "wide", Of: fmt.Sprintf("a step on %d clusters", o.Clusters), Ours: step(all.took), Floor: step(all.floor), Unit: table.Seconds},
		{Row: "wide", Of: "a step on 1 cluster", Ours: step(one.took), Floor: step(one.floor), Unit: table.Seconds},
		{Row: "wide", Of: fmt.Sprintf("how many times longer on %d than on 1", o.Clusters), Ours: step(all.took) / step(one.took),
			Floor: step(all.floor) / step(one.floor), Most: table.Goal(maxWidth)},
		{Row: "wide", Of: fmt.Sprintf("processor time of an upgrade on %d clusters (floor: ours on 1)", o.Clusters), Ours: each(all),
			Floor: each(one), Unit: table.Seconds},
	}
}
