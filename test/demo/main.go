// SPDX-License-Identifier: Apache-2.0

// Command demo shows one rollout on real control planes: two clusters are joined, an Application is rolled out
// step by step, a RolloutBlock stops it at the gate, an override lets it through, and an abort takes it back. Each line it
// prints is true because it was just read from an API server; the first expectation that fails ends it with status 1.
//
// KEEP=1 leaves the fleet up when the story is over, or has failed, until it is interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "\ndemo failed: %v\n", err)
		os.Exit(1)
	}
}

// run goes from an empty machine to the last line, and cleans up.
func run(ctx context.Context) (err error) {
	s, err := begin(ctx, os.Stdout)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()

	for i, c := range []struct {
		title string
		tell  func(context.Context) error
	}{
		{"A management cluster is set up, two application clusters join", s.join},
		{"A developer applies an Application", s.apply},
		{"Step by step to full on", s.rollOut},
		{"A new chart version: canary at 50/50 in both regions", s.canary},
		{"An SRE blocks all rollouts", s.block},
		{"Break-glass: the override lets one through, and leaves a trace", s.override},
		{"Abort: the contender is deleted", s.abort},
	} {
		s.chapter(i+1, c.title)
		if err := c.tell(ctx); err != nil {
			s.showLogs()
			err = fmt.Errorf("chapter %d (%s): %w", i+1, c.title, err)
			fmt.Fprintf(os.Stderr, "\n%v\n", err)
			s.keep(ctx)
			return err
		}
	}
	s.sumUp()
	s.keep(ctx)
	return nil
}
