// SPDX-License-Identifier: Apache-2.0

// Package neighbours measures what one tenant may do to another at worst: how long a write, a refresh of content and a run of a tenant take
// beside attacks of another tenant, and with nothing else going on.
package neighbours

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"shipper.dev/shipper/test/bench/table"
	"shipper.dev/shipper/test/bench/world"
)

const (
	// patience is how long one write, refresh or run may take. One that takes longer counts as that long.
	patience = 40 * time.Second
	// settling is how long the end of an attack may take.
	settling = 20 * time.Second
)

// Neighbours are two tenants.
type Neighbours struct {
	// Window is how long each attack goes on, and how long the tenant is measured with nothing else going on.
	Window time.Duration
}

// samples are how long what the tenant did took, by what it was.
type samples map[string][]time.Duration

// Run measures, and keeps out informed. All times are given to file.
func (n Neighbours) Run(ctx context.Context, out, file io.Writer) (lines []table.Line, err error) {
	w, err := world.Begin(ctx, world.Options{Clusters: 1, Podless: true})
	defer func() { err = errors.Join(err, w.End()) }()
	if err != nil {
		return nil, err
	}
	tenant, err := newTenant(ctx, w)
	if err != nil {
		return nil, fmt.Errorf("making the tenant: %w", err)
	}
	attacker, err := newAttacker(ctx, w)
	if err != nil {
		return nil, fmt.Errorf("making the attacker: %w", err)
	}
	if _, err := n.measure(ctx, tenant, 1); err != nil { // fills caches
		return nil, err
	}
	alone, err := n.measure(ctx, tenant, 0)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(out, "with nothing else going on:", alone)
	for i, a := range attacker.attacks() {
		if i > 0 {
			if err := settle(ctx, w); err != nil {
				return lines, err
			}
		}
		sent, beside, err := n.beside(ctx, tenant, a)
		if err != nil {
			return lines, fmt.Errorf("beside %s: %w", a.name, err)
		}
		fmt.Fprintf(out, "beside %d %s: %s\n", sent, a.name, beside)
		lines = append(lines, linesOf(a.name, beside, alone)...)
		for what, times := range beside {
			if err := table.WriteSamples(file, fmt.Sprintf("Neighbours/attack=%s/of=%s", a.short, what), times); err != nil {
				return lines, err
			}
		}
	}
	return lines, nil
}

// beside measures beside an attack, and returns how often the attacker did something.
func (n Neighbours) beside(ctx context.Context, t *tenant, a attack) (int64, samples, error) {
	attacking, stop := context.WithCancel(ctx)
	ended := a.begin(attacking)
	found, err := n.measure(ctx, t, 0)
	stop()
	return ended(), found, err
}

// measure has the tenant do everything side by side, each again and again: most times, or until the window ends if most is 0.
func (n Neighbours) measure(ctx context.Context, t *tenant, most int) (samples, error) {
	out, lock, ends := samples{}, sync.Mutex{}, time.Now().Add(n.Window)
	var all sync.WaitGroup
	var errs error
	for what, do := range t.operations() {
		all.Go(func() {
			for i := 0; i == 0 || i < most || most == 0 && time.Now().Before(ends); i++ {
				one, cancel := context.WithTimeout(ctx, patience)
				began := time.Now()
				err := do(one)
				took := time.Since(began)
				late := one.Err() != nil && ctx.Err() == nil
				cancel()
				lock.Lock()
				out[what] = append(out[what], took)
				if err != nil && !late {
					errs = errors.Join(errs, fmt.Errorf("%s: %w", what, err))
				}
				lock.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return out, errs
}

// String is what was measured, for people.
func (s samples) String() string {
	var out string
	for _, what := range operations {
		if times := s[what]; len(times) > 0 {
			out += fmt.Sprintf("  %s %.3f s, at most %.3f s (%d)", what, table.Median(times), slices.Max(times).Seconds(), len(times))
		}
	}
	return out
}

// linesOf the table: the median and the longest of each.
func linesOf(name string, beside, alone samples) (out []table.Line) {
	for _, what := range operations {
		out = append(out,
			table.Line{Row: "neighbours", Of: what + " beside " + name + ", median", Ours: table.Median(beside[what]),
				Floor: table.Median(alone[what]), Unit: table.Seconds},
			table.Line{Row: "neighbours", Of: what + " beside " + name + ", at most", Ours: slices.Max(beside[what]).Seconds(),
				Floor: slices.Max(alone[what]).Seconds(), Unit: table.Seconds})
	}
	return out
}

// settle blocks until Shipper writes nothing for a second, or for as long as that may take.
func settle(ctx context.Context, w *world.World) error {
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	before, err := w.Count()
	for err == nil {
		select {
		case <-ctx.Done():
			return nil //nolint:nilerr // what is left is measured with the next attack
		case <-time.After(time.Second):
		}
		var now world.Requests
		if now, err = w.Count(); err == nil && now.Minus(before).Writes == 0 {
			return nil
		}
		before = now
	}
	return err
}
