// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"fmt"
	"time"

	"shipper.dev/shipper/test/bench/table"
)

// settling is how long after a rollout something may still be said of it: statuses lag by four seconds at most.
const settling = 5 * time.Second

// Collected is how long a process of Go that rests takes to collect its garbage and give memory back: it does so after two
// minutes without any other reason.
const Collected = 130 * time.Second

// Rest is what Shipper does when there is nothing to do.
type Rest struct {
	// Time is for how long it was watched.
	Time time.Duration
	// Asked is what it asked of API servers.
	Asked Requests
	// Cores is what the reconciler took of one processor.
	Cores float64
	// Memory is what the reconciler has.
	Memory Memory
}

// AtRest watches what has been rolled out for a while.
func (w *World) AtRest(ctx context.Context, d time.Duration) (Rest, error) {
	fmt.Printf("at rest for %s\n", d)
	out := Rest{Time: d}
	if err := pass(ctx, settling); err != nil {
		return out, err
	}
	before, err := w.Count()
	if err != nil {
		return out, err
	}
	used, _, err := Usage(w.Pod.Reconciler.Pid())
	if err != nil {
		return out, err
	}
	if err := pass(ctx, d); err != nil {
		return out, err
	}
	after, err := w.Count()
	if err != nil {
		return out, err
	}
	now, _, err := Usage(w.Pod.Reconciler.Pid())
	if err != nil {
		return out, err
	}
	out.Asked, out.Cores = after.Minus(before), (now-used).Seconds()/d.Seconds()
	out.Memory, err = MemoryOf(ctx, w.Pod.Reconciler)
	return out, err
}

// pass lets time pass.
func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Lines of the table. maxCores is the goal, in percent of a core.
func (r Rest) Lines(row string, maxCores float64) []table.Line {
	of := fmt.Sprintf("at rest for %s: ", r.Time)
	return []table.Line{
		{Row: row, Of: of + "writes", Ours: float64(r.Asked.Writes), Most: table.Goal(0)},
		{Row: row, Of: of + "reads", Ours: float64(r.Asked.Reads), Most: table.Goal(0)},
		{Row: row, Of: of + "a core", Ours: r.Cores * 100, Unit: table.Percent, Most: table.Goal(maxCores)},
		{Row: row, Of: of + "memory of the reconciler", Ours: float64(r.Memory.Resident) / (1 << 20), Unit: table.MiB},
		{Row: row, Of: of + "of it in use", Ours: float64(r.Memory.Live) / (1 << 20), Unit: table.MiB},
	}
}
