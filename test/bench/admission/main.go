// SPDX-License-Identifier: Apache-2.0

// Command admission measures what the gate costs whoever writes, and how soon a RolloutBlock holds. On one real API server
// Shipper's webhooks stand beside a webhook of the same server code that allows everything; each write is sent to both,
// one right after the other, so that whatever else the machine does hits both alike. It ends with status 1 when a
// goal is missed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// The goals.
const (
	maxRatio = 1.3                    // at the median, one write at a time
	maxFresh = 250 * time.Millisecond // from the 201 to every replica, for 99 of 100 blocks
)

func main() {
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) == 4 && os.Args[1] == noopCommand {
		if err := serveNoop(ctx, os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, "no-op webhook:", err)
			os.Exit(1)
		}
		return
	}
	releases := flag.Int("releases", 10000, "how many Releases are known")
	pairs := flag.Int("pairs", 400, "how many pairs of writes are measured in each row")
	flag.Parse()
	if err := run(ctx, *releases, *pairs); err != nil {
		fmt.Fprintln(os.Stderr, "bench-admission:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, releases, pairs int) (err error) {
	w, err := begin(ctx)
	defer func() { err = errors.Join(err, w.end()) }()
	if err != nil {
		return err
	}
	fmt.Printf("making %d Releases\n", releases)
	if err := w.makeReleases(ctx, releases); err != nil {
		return err
	}
	if err := w.divide(ctx); err != nil {
		return err
	}
	var missed []error
	fmt.Println("\nwrite        blocks  at a time   no-op p50    p99      Shipper p50    p99      ratio p50  (spread)")
	for _, blocks := range []int{10, 1000} {
		if err := w.makeBlocks(ctx, blocks); err != nil {
			return err
		}
		for _, kind := range kinds {
			for _, workers := range []int{1, concurrency} {
				r, err := w.measure(ctx, kind, workers, pairs)
				if err != nil {
					return err
				}
				fmt.Printf("%-12s %6d  %9d   %s\n", kind.name, blocks, workers, r)
				if workers == 1 && r.ratio > maxRatio {
					missed = append(missed, fmt.Errorf("%s with %d blocks takes %.2f times as long, and the goal is %.1f",
						kind.name, blocks, r.ratio, maxRatio))
				}
			}
		}
	}
	p99, err := w.freshness(ctx, 200)
	if err != nil {
		return err
	}
	if p99 > maxFresh {
		missed = append(missed, fmt.Errorf("a block holds everywhere after %s, and the goal is %s", p99, maxFresh))
	}
	return errors.Join(missed...)
}
