// SPDX-License-Identifier: Apache-2.0

// Package rollout measures how long rollouts take, beside a program written by hand that makes only the calls no rollout can do
// without: the floor. Both upgrade the same workload on the same real control planes, one after the other, and each is the first
// every other time.
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

// The goals.
const (
	maxRatio       = 1.3 // to the floor, at the median
	maxManagement  = 80  // requests for an upgrade
	maxApplication = 40  // to each application cluster
	maxCores       = 0.5 // percent of one, at rest
)

// afterwards is how long what was rolled out is watched at rest.
const afterwards = 20 * time.Second

// Options say what is measured.
type Options struct {
	// Clusters are on how many clusters, in rising order.
	Clusters []int
	// Rounds is how many upgrades of each side.
	Rounds int
	// Replicas is how many Pods the workload has in each cluster.
	Replicas int32
}

// Run measures, and prints what was asked for in an upgrade to out. All times are given to samples.
func Run(ctx context.Context, o Options, out, samples io.Writer) (lines []table.Line, err error) {
	w, err := world.Begin(ctx, world.Options{Clusters: o.Clusters[len(o.Clusters)-1]})
	defer func() { err = errors.Join(err, w.End()) }()
	if err != nil {
		return nil, err
	}
	for i, n := range o.Clusters {
		r, err := onClusters(ctx, w, n, o)
		if err != nil {
			return nil, fmt.Errorf("rolling out on %d clusters: %w", n, err)
		}
		for side, times := range map[string][]time.Duration{"shipper": r.ours, "floor": r.floor} {
			if err := table.WriteSamples(samples, fmt.Sprintf("Rollout/clusters=%d/side=%s", n, side), times); err != nil {
				return nil, err
			}
		}
		if i == 0 {
			fmt.Fprintf(out, "what Shipper asked for in an upgrade on %d clusters:\n", n)
			r.requests.Explain(out)
		}
		lines = append(lines, r.lines("rollout", fmt.Sprintf("%d clusters, ", n), "an upgrade in three steps",
			goals{ratio: maxRatio, management: maxManagement, application: maxApplication})...)
	}
	rest, err := w.AtRest(ctx, afterwards)
	return append(lines, rest.Lines("rollout", maxCores)...), err
}

// goals are those of one comparison; without ratio the times have none.
type goals struct{ ratio, management, application float64 }

// lines of the table: how it compares to the floor.
func (r result) lines(row, on, what string, g goals) []table.Line {
	took := table.Line{Row: row, Of: on + what, Ours: table.Median(r.ours), Floor: table.Median(r.floor), Unit: table.Seconds}
	if g.ratio > 0 {
		took.Most = table.Goal(g.ratio)
	}
	return []table.Line{
		took,
		{Row: row, Of: on + "EndpointSlices late for a second, in all upgrades", Ours: float64(r.late), Floor: float64(r.floorLate)},
		{Row: row, Of: on + "requests to management", Ours: float64(r.requests.Management), Most: table.Goal(g.management)},
		{Row: row, Of: on + "requests to an application cluster", Ours: float64(r.requests.Application), Most: table.Goal(g.application)},
	}
}
