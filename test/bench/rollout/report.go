// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"
)

// The goals.
const (
	maxRatio       = 1.3 // to the floor, at the median
	maxGrowth      = 1.3 // of the time on most clusters to that on one
	maxManagement  = 40  // requests for an upgrade
	maxApplication = 20  // to each application cluster
)

// writeSamples writes what was measured in the format of Go's benchmarks, which benchstat reads.
func (r result) writeSamples(w io.Writer) error {
	for side, times := range map[string][]time.Duration{"shipper": r.ours, "floor": r.floor} {
		for _, t := range times {
			if _, err := fmt.Fprintf(w, "BenchmarkRollout/clusters=%d/side=%s 1 %d ns/op\n", r.clusters, side, t.Nanoseconds()); err != nil {
				return err
			}
		}
	}
	return nil
}

// report prints all rows, and returns an error that names the goals that were missed.
func report(w io.Writer, results []result, rest resting) error {
	var missed []error
	miss := func(format string, args ...any) { missed = append(missed, fmt.Errorf(format, args...)) }
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nrow\tclusters\tfloor p50\tShipper p50\tratio\tto 1 cluster\trequests: management\teach application cluster")
	first := median(results[0].ours)
	for _, r := range results {
		ours, floor := median(r.ours), median(r.floor)
		ratio, growth := float64(ours)/float64(floor), float64(ours)/float64(first)
		fmt.Fprintf(table, "rollout\t%d\t%s\t%s\t%.2f\t%.2f\t%d\t%d\n", r.clusters, floor.Round(time.Millisecond), ours.Round(time.Millisecond),
			ratio, growth, r.requests.management, r.requests.application)
		if ratio > maxRatio {
			miss("rollout on %d clusters takes %.2f times as long as the floor, and the goal is %.1f", r.clusters, ratio, maxRatio)
		}
		if growth > maxGrowth {
			miss("rollout on %d clusters takes %.2f times as long as on %d, and the goal is %.1f",
				r.clusters, growth, results[0].clusters, maxGrowth)
		}
		if r.requests.management > maxManagement || r.requests.application > maxApplication {
			miss("rollout on %d clusters makes %d requests to the management cluster and %d to an application cluster, and the goals are %d and %d",
				r.clusters, r.requests.management, r.requests.application, maxManagement, maxApplication)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nwhat Shipper asked for in an upgrade on %d clusters:\n", results[0].clusters)
	results[0].requests.explain(w)
	fmt.Fprintf(w, "\nat rest for %s: %d writes, %d requests to the management cluster, %d to the busiest other; %.2f %% of a core, %d MiB\n",
		rest.time, rest.asked.writes, rest.asked.management, rest.asked.application, rest.cores*100, rest.memory>>20)
	if rest.asked.writes > 0 {
		miss("at rest something was written %d times", rest.asked.writes)
	}
	return errors.Join(missed...)
}

// explain lists what an upgrade asked for, the most frequent first.
func (r requests) explain(w io.Writer) {
	kinds := slices.SortedFunc(maps.Keys(r.kinds), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.kinds[b], r.kinds[a]), cmp.Compare(a, b))
	})
	for _, kind := range kinds {
		fmt.Fprintf(w, "%6d  %s\n", r.kinds[kind], kind)
	}
}
