// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"shipper.dev/shipper/test/bench/world"
	"shipper.dev/shipper/test/pod"
)

const (
	// collected is how long it takes at most until a process of Go that rests collects its garbage.
	collected = 130 * time.Second
	look      = time.Second
	// forgotten is the time after which no event is queued any more.
	forgotten = time.Minute
	// How much more there may be at the end than at the beginning: what varies from one look to the next.
	moreHeap, moreMiB, moreGoroutines = 1.1, 4, 20
)

// used is what a process has, at rest.
type used struct {
	name       string
	heap       float64 // MiB that are in use when garbage has just been collected
	resident   float64 // MiB
	goroutines float64
}

// window is what was seen while nothing was edited.
type window struct {
	used   []used
	asked  world.Requests
	length time.Duration
}

// processes are the two of Shipper.
func (s *soak) processes() []*pod.Process {
	return []*pod.Process{s.world.Pod.Reconciler, s.world.Pod.Webhook}
}

// quiet watches Shipper without any requests, until both processes have collected their garbage.
func (s *soak) quiet(ctx context.Context) (window, error) {
	wait(ctx, max(s.forget, 5*time.Second)) // statuses lag, too
	before, err := s.world.Count()
	if err != nil {
		return window{}, err
	}
	began := time.Now()
	out := window{used: make([]used, len(s.processes()))}
	for i, p := range s.processes() {
		if out.used[i], err = rested(ctx, p, began); err != nil {
			return window{}, fmt.Errorf("looking at %s: %w", p.Name, err)
		}
	}
	after, err := s.world.Count()
	out.asked, out.length = after.Minus(before), time.Since(began).Round(time.Second)
	return out, err
}

// rested looks at a process as soon as it has collected garbage after a time.
func rested(ctx context.Context, p *pod.Process, after time.Time) (used, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*collected, errors.New("it does not collect garbage"))
	defer cancel()
	for {
		m, err := metrics(ctx, p.Metrics)
		if err != nil {
			return used{}, errors.Join(err, p.Ended())
		}
		if m["go_memstats_last_gc_time_seconds"] > float64(after.UnixNano())/1e9 {
			const mib = 1 << 20
			_, resident, err := world.Usage(p.Pid())
			return used{
				name: p.Name, heap: m["go_memstats_heap_alloc_bytes"] / mib, resident: float64(resident) / mib,
				goroutines: m["go_goroutines"],
			}, err
		}
		if wait(ctx, look); ctx.Err() != nil {
			return used{}, context.Cause(ctx)
		}
	}
}

// metrics are those of a page that are gauges.
func metrics(ctx context.Context, url string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	out := map[string]float64{}
	for name, family := range families {
		if m := family.GetMetric(); len(m) == 1 && m[0].GetGauge() != nil {
			out[name] = m[0].GetGauge().GetValue()
		}
	}
	return out, nil
}

// compare prints the counts at the beginning and at the end.
func compare(before, after window) string {
	var out strings.Builder
	for i, b := range before.used {
		a := after.used[i]
		fmt.Fprintf(&out, "%s: heap %.1f → %.1f MiB, resident %.0f → %.0f MiB, goroutines %.0f → %.0f\n",
			b.name, b.heap, a.heap, b.resident, a.resident, b.goroutines, a.goroutines)
	}
	for _, w := range []window{before, after} {
		fmt.Fprintf(&out, "at rest for %s: %d writes, %d reads\n", w.length, w.asked.Writes, w.asked.Reads)
	}
	return out.String()
}

// grown is what there is more of than there should be.
func (s *soak) grown(before, after window) error {
	var errs []error
	for i, b := range before.used {
		a := after.used[i]
		if s.forget >= forgotten && a.heap > b.heap*moreHeap+moreMiB {
			errs = append(errs, fmt.Errorf("%s has %.1f MiB in use where it had %.1f", b.name, a.heap, b.heap))
		}
		if a.goroutines > b.goroutines+moreGoroutines {
			errs = append(errs, fmt.Errorf("%s has %.0f goroutines where it had %.0f", b.name, a.goroutines, b.goroutines))
		}
	}
	for _, w := range []window{before, after} {
		if w.asked.Writes > 0 {
			var what []string
			for kind, n := range w.asked.Kinds {
				what = append(what, fmt.Sprintf("%d × %s", n, kind))
			}
			slices.Sort(what)
			errs = append(errs, fmt.Errorf("%d writes at rest: %s", w.asked.Writes, strings.Join(what, ", ")))
		}
	}
	return errors.Join(errs...)
}
