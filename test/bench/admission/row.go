// SPDX-License-Identifier: Apache-2.0

// Package admission measures what admission adds to a write, and how soon a RolloutBlock holds. On one real API server
// Shipper's webhooks stand beside a webhook of the same server code that allows everything; each write is sent to both,
// one right after the other, so that whatever else the machine does hits both alike.
package admission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"shipper.dev/shipper/test/bench/table"
)

// The goals.
const (
	maxRatio = 1.3                    // at the median, one write at a time
	maxFresh = 250 * time.Millisecond // from the 201 to every replica, for 99 of 100 blocks
)

// blocks are how many RolloutBlocks there are, fresh is how many more are made one after the other.
var blocks, fresh = []int{10, 1000}, 200

// Admission is how much is known and written.
type Admission struct {
	// Releases is how many are known.
	Releases int
	// Pairs is how many pairs of writes are measured of each kind, with so many blocks and so many at a time.
	Pairs int
}

// Run measures.
func (a Admission) Run(ctx context.Context, out, samples io.Writer) (lines []table.Line, err error) {
	w, err := begin(ctx)
	defer func() { err = errors.Join(err, w.end()) }()
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "admission: making %d Releases\n", a.Releases)
	if err := w.makeReleases(ctx, a.Releases); err != nil {
		return nil, err
	}
	if err := w.divide(ctx); err != nil {
		return nil, err
	}
	for _, count := range blocks {
		if err := w.makeBlocks(ctx, count); err != nil {
			return lines, err
		}
		for _, kind := range kinds {
			for _, workers := range []int{1, concurrency} {
				fmt.Fprintf(out, "admission: %s, %d blocks, %d at a time\n", kind.name, count, workers)
				pairs, err := w.measure(ctx, kind, workers, a.Pairs)
				if err != nil {
					return lines, err
				}
				found, err := pairs.lines(fmt.Sprintf("%s, %d blocks, %d at a time", kind.name, count, workers), workers, samples)
				if lines = append(lines, found...); err != nil {
					return lines, err
				}
			}
		}
	}
	fmt.Fprintf(out, "admission: making %d blocks, one after the other\n", fresh)
	held, err := w.freshness(ctx, fresh)
	return append(lines, held...), err
}
