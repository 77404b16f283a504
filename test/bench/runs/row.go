// SPDX-License-Identifier: Apache-2.0

// Package runs measures SequenceRuns whose tasks need no rollout: how long many of them take at once, what they ask of the API server, how
// soon one task follows another, and what runs cost that wait for an approval.
package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"shipper.dev/shipper/apis/rules/shipyard"
	"shipper.dev/shipper/test/bench/table"
	"shipper.dev/shipper/test/bench/world"
)

const (
	shipyards = 10 // over which the services are spread
	writers   = 32 // creates at a time
	workers   = 8  // status writes of the floor at a time: as many as shipper-reconciler has workers
	single    = 50 // deliveries one after another
	perRun    = 2  // runs of a delivery: the second follows from the first
	tasks     = 5  // of both runs
	watched   = 20 * time.Second
	profiling = 10 * time.Second
	patience  = 15 * time.Minute
)

// The goals.
const (
	maxAtOnce  = 2                      // of many deliveries at once, to the floor
	maxBegun   = 20                     // seconds until the last of many runs has begun
	maxWrites  = 3                      // for each task, without events
	maxNext    = 30 * time.Millisecond  // from the end of a task to the begin of the next, and from there to its end, at the median
	maxNextAll = 250 * time.Millisecond // of 99 of 100, also from the end of a run to the one that follows
	maxCores   = 0.5                    // percent of one, at rest
)

// Runs are deliveries of services by two runs each: a user starts the first, and the second follows. Its floor is a program that makes the
// same runs and writes to their status that a task has begun or ended, and nothing else.
type Runs struct {
	// Services is how many are delivered at once, and then how many runs wait for an approval.
	Services int
	// Profiles is a folder for profiles of Shipper. Empty: none are taken.
	Profiles string
}

// Run measures. It prints what was asked for to out, and gives the times between tasks to samples.
func (r Runs) Run(ctx context.Context, out, samples io.Writer) (lines []table.Line, err error) {
	w, err := world.Begin(ctx, world.Options{Profiles: r.Profiles})
	defer func() { err = errors.Join(err, w.End()) }()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the row takes longer than %s", patience))
	defer cancel()
	next, err := singly(ctx, w)
	if err != nil {
		return nil, err
	}
	lines, crowded, err := r.atOnce(ctx, w, out)
	if err != nil {
		return lines, err
	}
	for name, times := range map[string][]time.Duration{"single": next.followUp, "at-once": crowded.followUp} {
		if err := table.WriteSamples(samples, "Runs/next="+name, times); err != nil {
			return lines, err
		}
	}
	lines = append(append(lines, next.lines("runs one after another", true)...), crowded.lines(r.row(), false)...)
	rest, err := r.waiting(ctx, w)
	if err != nil {
		return lines, err
	}
	lines = append(lines, rest.Lines(fmt.Sprintf("runs, %d wait for an approval", r.Services), maxCores)...)
	floor, err := r.floor(ctx, w)
	lines[0].Floor, lines[1].Floor = floor[0].Seconds(), floor[1].Seconds()
	return lines, err
}

// row names the deliveries at once.
func (r Runs) row() string { return fmt.Sprintf("runs, %d deliveries at once", r.Services) }

// singly delivers services one after another, the first of which warm everything up.
func singly(ctx context.Context, w *world.World) (gaps, error) {
	o, err := newYards(ctx, w, "single")
	if err != nil {
		return gaps{}, err
	}
	for i := range single + shipyards {
		if err := o.create(ctx, i, delivery); err != nil {
			return gaps{}, err
		}
		if err := o.until(ctx, perRun*(i+1), shipyard.IsFinished); err != nil {
			return gaps{}, err
		}
	}
	return o.gaps(shipyards), nil
}

// atOnce delivers all services at once.
func (r Runs) atOnce(ctx context.Context, w *world.World, out io.Writer) ([]table.Line, gaps, error) {
	o, err := newYards(ctx, w, "at-once")
	if err != nil {
		return nil, gaps{}, err
	}
	if err := o.drained(ctx); err != nil {
		return nil, gaps{}, err
	}
	before, err := o.spent(ctx)
	if err != nil {
		return nil, gaps{}, err
	}
	profiled := w.Processors(ctx, "runs", profiling)
	began := time.Now()
	err = world.AtMost(writers, r.Services, func(i int) error { return o.create(ctx, i, delivery) })
	if err != nil {
		return nil, gaps{}, err
	}
	created := time.Since(began)
	if err := o.until(ctx, perRun*r.Services, shipyard.IsFinished); err != nil {
		return nil, gaps{}, err
	}
	took := time.Since(began)
	fmt.Fprintf(out, "%d deliveries at once: %s\n", r.Services, took.Round(time.Millisecond))
	if err := errors.Join(profiled(), o.drained(ctx)); err != nil {
		return nil, gaps{}, err
	}
	after, err := o.spent(ctx)
	if err != nil {
		return nil, gaps{}, err
	}
	fmt.Fprintln(out, "what Shipper asked for in them:")
	after.asked.Minus(before.asked).Explain(out)
	lines := []table.Line{
		{Row: r.row(), Of: "to the end of all", Ours: took.Seconds(), Unit: table.Seconds, Most: table.Goal(maxAtOnce)},
		{Row: r.row(), Of: "all first runs created", Ours: created.Seconds(), Unit: table.Seconds},
		{Row: r.row(), Of: "all first runs begun", Ours: o.lastBegin().Sub(began).Seconds(), Unit: table.Seconds, Most: table.Goal(maxBegun)},
	}
	return append(lines, after.minus(before).lines(r.row(), perRun*r.Services, tasks*r.Services)...), o.gaps(0), nil
}

// waiting has as many runs wait for an approval, and watches the reconciler at rest.
func (r Runs) waiting(ctx context.Context, w *world.World) (world.Rest, error) {
	o, err := newYards(ctx, w, "waiting")
	if err != nil {
		return world.Rest{}, err
	}
	if err := world.AtMost(writers, r.Services, func(i int) error { return o.create(ctx, i, question) }); err != nil {
		return world.Rest{}, err
	}
	if err := o.until(ctx, r.Services, waits); err != nil {
		return world.Rest{}, err
	}
	if err := o.drained(ctx); err != nil {
		return world.Rest{}, err
	}
	rest, err := w.AtRest(ctx, watched)
	return rest, errors.Join(err, w.Heaps(ctx, "waiting"))
}

// spent is what Shipper has done so far.
type spent struct {
	asked      world.Requests
	reconciles float64
	processor  time.Duration // of the reconciler
}

func (o *yards) spent(ctx context.Context) (s spent, err error) {
	if s.asked, err = o.world.Count(); err != nil {
		return s, err
	}
	if s.processor, _, err = world.Usage(o.world.Pod.Reconciler.Pid()); err != nil {
		return s, err
	}
	s.reconciles, err = world.Metric(ctx, o.world.Pod.Reconciler, `controller_runtime_reconcile_total{controller="run"`)
	return s, err
}

func (s spent) minus(before spent) spent {
	return spent{s.asked.Minus(before.asked), s.reconciles - before.reconciles, s.processor - before.processor}
}

// lines of the table. The API server stores no access review, and events are no part of a run.
func (s spent) lines(row string, runs, tasks int) []table.Line {
	events, reviews := 0, 0
	for kind, n := range s.asked.Kinds {
		switch {
		case strings.Contains(kind, " events "):
			events += n
		case strings.Contains(kind, "accessreviews"):
			reviews += n
		}
	}
	writes := s.asked.Writes - events - reviews
	each := func(of string, n float64, among int) table.Line {
		return table.Line{Row: row, Of: of, Ours: n / float64(among), Unit: table.Each}
	}
	perTask := each("writes for a task, without events", float64(writes), tasks)
	perTask.Most = table.Goal(maxWrites)
	return []table.Line{
		perTask, each("reads for a task", float64(s.asked.Reads), tasks),
		each("writes for a run, without events", float64(writes), runs), each("events for a run", float64(events), runs),
		each("reads for a run", float64(s.asked.Reads), runs), each("access reviews for a run", float64(reviews), runs),
		each("reconciles for a run", s.reconciles, runs),
		{Row: row, Of: "processor of the reconciler for a run", Ours: s.processor.Seconds() / float64(runs), Unit: table.Seconds},
	}
}
