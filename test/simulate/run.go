// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"shipper.dev/shipper/test/bench/table"
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/memory"
)

// simulation is what is run, and where.
type simulation struct {
	applications, clusters, replicas, workers int
	rounds, changes                           int // how often all are changed, and before that one
	atOnce                                    int // how many are under way when all are changed; 0: all
	latency, pods, rest, patience             time.Duration
	every                                     time.Duration // how often the progress of a change of all is printed
	profiles                                  string
	placements                                bool  // whether Applications have placements, and no regions
	resources                                 bool  // whether Applications have resources, and no chart
	waves                                     sizes // of the clusters of a rollout in waves; none: another run
	tries                                     int   // how often one Application is rolled out in waves alone
	out                                       io.Writer

	told func(event []byte) // is called with events; nil: they are dropped

	dir        string
	charts     *charts.Repository
	management *memory.Server
	servers    []*memory.Server
	sight      *sight
	completed  *completions // with waves
	reconciler *process
	empty      float64 // MiB of heap when there were clusters and no Application
	places     int     // clusters of all Applications together
	generation int     // of all Applications
	ahead      int     // of the first
}

// run prints each result as soon as it is known.
func (s *simulation) run(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.dir, err = os.MkdirTemp("", "shipper-simulate-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.dir)
	defer s.close()
	if s.charts, err = charts.Start(); err != nil {
		return err
	}
	if err := s.begin(); err != nil {
		return err
	}
	s.look(ctx)
	s.tell("%d Applications, %d clusters; an answer takes %s, Pods take %s, %d workers", s.applications, s.clusters,
		s.latency, s.pods, s.workers)
	if err := s.start(); err != nil {
		return err
	}
	if len(s.waves) > 0 {
		return s.runStaged(ctx)
	}
	for _, part := range []func(context.Context) error{s.connect, s.create, s.atRest, s.change, s.changeAll, s.restart} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *simulation) close() {
	s.reconciler.kill()
	for _, server := range append(s.servers, s.management) {
		if server != nil {
			server.Close()
		}
	}
	if s.charts != nil {
		s.charts.Close()
	}
}

func (s *simulation) tell(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// bounded gives up after the patience there is.
func (s *simulation) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.patience, fmt.Errorf("it takes longer than %s", s.patience))
}

// connect joins all clusters while there is nothing in them.
func (s *simulation) connect(ctx context.Context) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	if err := s.up(ctx); err != nil {
		return err
	}
	before, err := s.reconciler.used(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := s.join(); err != nil {
		return err
	}
	if err := s.sight.joined(ctx, s.clusters); err != nil {
		return err
	}
	took := time.Since(began)
	pass(ctx, time.Second)
	after, err := s.reconciler.used(ctx)
	if err != nil {
		return err
	}
	n := float64(s.clusters)
	s.empty = after.heap
	s.tell("clusters: all connected after %s; each takes %.0f KiB of heap, %.0f KiB resident, %.0f goroutines", took.Round(time.Millisecond),
		(after.heap-before.heap)*1024/n, (after.resident-before.resident)*1024/n, (after.goroutines-before.goroutines)/n)
	return nil
}

// up waits until the reconciler answers.
func (s *simulation) up(ctx context.Context) error {
	for {
		err := s.reconciler.get(ctx, s.reconciler.Profiles+"/debug/pprof/cmdline", io.Discard)
		if err == nil {
			return nil
		}
		select {
		case <-s.reconciler.ended:
			return errors.New("the reconciler has ended")
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// create makes all Applications at once.
func (s *simulation) create(ctx context.Context) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	before, err := s.reconciler.used(ctx)
	if err != nil {
		return err
	}
	err = s.measured(ctx, "first rollouts", func() error {
		return s.each(ctx, 0, 0, s.application)
	})
	if err != nil {
		return err
	}
	pass(ctx, 3*time.Second)
	after, err := s.reconciler.used(ctx)
	if err != nil {
		return err
	}
	n := float64(s.applications)
	s.tell("memory: %.0f MiB of heap, %.0f MiB resident, %.0f goroutines; "+
		"an Application of one Release, %.1f clusters each, takes %.0f KiB of heap",
		after.heap, after.resident, after.goroutines, float64(s.places)/n, (after.heap-before.heap)*1024/n)
	return nil
}

// each does something to all Applications from one on, to no more at once than are to be under way, and waits until they are where
// that leads: at the step of a generation.
func (s *simulation) each(ctx context.Context, from, generation int, do func(i int) error) error {
	began, there := time.Now(), s.sight.count(generation)
	telling, stop := context.WithCancel(ctx)
	told := make(chan struct{})
	go func() {
		defer close(told)
		for pass(telling, s.every); telling.Err() == nil; pass(telling, s.every) {
			s.tell("%d of %d are there after %s", s.sight.count(generation)-there, s.applications-from, time.Since(began).Round(time.Second))
		}
	}()
	defer func() { stop(); <-told }()
	for i := from; i < s.applications; i++ {
		if s.atOnce > 0 {
			if err := s.sight.upgraded(ctx, generation, there+i-from-s.atOnce+1); err != nil {
				return err
			}
		}
		if err := do(i); err != nil {
			return err
		}
	}
	return s.sight.upgraded(ctx, generation, there+s.applications-from)
}

// atRest watches for a while.
func (s *simulation) atRest(ctx context.Context) error {
	before, err := s.reconciler.used(ctx)
	if err != nil {
		return err
	}
	reads, writes := s.asked()
	pass(ctx, s.rest)
	readsNow, writesNow := s.asked()
	after, err := s.reconciler.used(ctx)
	if err != nil {
		return err
	}
	s.tell("at rest for %s: %d reads, %d writes, %.2f %% of a core", s.rest, readsNow-reads, writesNow-writes,
		(after.processor-before.processor).Seconds()/s.rest.Seconds()*100)
	return nil
}

// asked is what all API servers were asked so far.
func (s *simulation) asked() (reads, writes int64) {
	for _, server := range append(slices.Clone(s.servers), s.management) {
		reads += server.Requests.Reads.Load()
		writes += server.Requests.Writes.Load()
	}
	return reads, writes
}

// change changes one Application again and again, while all others rest.
func (s *simulation) change(ctx context.Context) error {
	var took []time.Duration
	for range s.changes {
		began := time.Now()
		if err := s.changeFirst(ctx); err != nil {
			return err
		}
		took = append(took, time.Since(began))
		pass(ctx, time.Second)
	}
	s.tell("one change: %.2f s, the longest %.2f s", table.Median(took), slices.Max(took).Seconds())
	return nil
}

func (s *simulation) changeFirst(ctx context.Context) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	there := s.sight.count(s.ahead + 1)
	s.ahead++
	if err := s.upgrade(0, s.ahead); err != nil {
		return err
	}
	return s.sight.upgraded(ctx, s.ahead, there+1)
}

// changeAll upgrades all Applications at once.
func (s *simulation) changeAll(ctx context.Context) error {
	for range s.rounds {
		err := s.upgradeAll(ctx)
		if err != nil {
			return err
		}
		pass(ctx, 3*time.Second)
		after, err := s.reconciler.used(ctx)
		if err != nil {
			return err
		}
		s.tell("memory: %.0f MiB of heap, %.0f MiB resident, %.0f goroutines", after.heap, after.resident, after.goroutines)
	}
	return s.heap(ctx, "heap")
}

// upgradeAll upgrades all Applications but the first, once.
func (s *simulation) upgradeAll(ctx context.Context) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	s.generation++
	return s.measured(ctx, "change of all", func() error {
		return s.each(ctx, 1, s.generation, func(i int) error { return s.upgrade(i, s.generation) })
	})
}

// measured prints the cost of a piece of work for all Applications.
func (s *simulation) measured(ctx context.Context, what string, do func() error) error {
	before, err := s.reconciler.used(ctx)
	if err != nil {
		return err
	}
	reads, writes := s.asked()
	kinds := s.kinds()
	began := time.Now()
	profiling, stop := context.WithCancel(ctx)
	profiled := make(chan error, 1)
	go func() { profiled <- s.profile(profiling, what) }()
	err = do()
	took := time.Since(began)
	stop()
	if err := errors.Join(err, <-profiled); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	readsNow, writesNow := s.asked()
	after, err := s.reconciler.used(ctx)
	if err != nil {
		return err
	}
	n := float64(s.applications)
	processor := after.processor - before.processor
	s.tell("%s: %s, %.1f Applications a second, for each %.1f ms of a processor, %.1f reads and %.1f writes; %.2f cores were used", what,
		took.Round(100*time.Millisecond), n/took.Seconds(), processor.Seconds()*1000/n, float64(readsNow-reads)/n, float64(writesNow-writes)/n,
		processor.Seconds()/took.Seconds())
	s.tell("%s, requests for each: %s", what, s.most(kinds))
	return nil
}

// kinds are the requests so far, by verb and resource, of all API servers.
func (s *simulation) kinds() map[string]int {
	out := map[string]int{}
	for _, server := range append(slices.Clone(s.servers), s.management) {
		for kind, n := range server.Requests.Kinds() {
			out[kind] += n
		}
	}
	return out
}

// most lists what was asked most often since before, for each Application.
func (s *simulation) most(before map[string]int) string {
	now := s.kinds()
	for kind, n := range before {
		now[kind] -= n
	}
	var out []string
	for _, kind := range slices.SortedFunc(maps.Keys(now), func(a, b string) int { return cmp.Compare(now[b], now[a]) }) {
		if n := float64(now[kind]) / float64(s.applications); n >= 0.05 {
			out = append(out, fmt.Sprintf("%.1f %s", n, kind))
		}
	}
	return strings.Join(out, ", ")
}

// restart kills the reconciler while a rollout is under way.
func (s *simulation) restart(ctx context.Context) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	s.reconciler.kill()
	there := s.sight.count(s.ahead + 1)
	s.ahead++
	if err := s.upgrade(0, s.ahead); err != nil {
		return err
	}
	_, writes := s.asked()
	kinds := s.kinds()
	for _, server := range s.servers {
		server.Requests.FirstWrite.Store(0)
	}
	began := time.Now()
	if err := s.start(); err != nil {
		return err
	}
	if err := s.sight.upgraded(ctx, s.ahead, there+1); err != nil {
		return err
	}
	done := time.Since(began)
	pass(ctx, 5*time.Second)
	_, writesNow := s.asked()
	first := int64(0)
	for _, server := range s.servers {
		if at := server.Requests.FirstWrite.Load(); at != 0 && (first == 0 || at < first) {
			first = at
		}
	}
	used, err := s.reconciler.used(ctx)
	if err != nil {
		return err
	}
	s.tell("restart: the first write to a cluster after %.2f s, the change that waited was there after %.2f s; "+
		"%d writes in all; %.1f s of a processor, %.0f MiB of heap",
		time.Unix(0, first).Sub(began).Seconds(), done.Seconds(), writesNow-writes, used.processor.Seconds(), used.heap)
	s.tell("restart, requests for each: %s", s.most(kinds))
	s.tell("restart, memory: an Application takes %.0f KiB of heap", (used.heap-s.empty)*1024/float64(s.applications))
	return s.heap(ctx, "heap-restarted")
}

// pass lets time pass.
func pass(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
