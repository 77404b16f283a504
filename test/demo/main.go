// SPDX-License-Identifier: Apache-2.0

// Command demo shows one rollout on real control planes: two clusters are joined, an Application is rolled out
// step by step, a RolloutBlock stops it at the gate, an override lets it through, and an abort takes it back. Each line it
// prints is true because it was just read from an API server; the first expectation that fails ends it with status 1.
// With the argument bluegreen it shows a rollout that goes on by itself: preview, switch, failure. With checks it shows canaries that a
// metric decides. With fleet it shows a namespace that follows a fleet. With pipeline it shows versions that go through the
// stages of a shipyard. With charts it shows charts of others, unedited. With waves it shows a rollout that goes from one group of clusters
// to the next.
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

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	// Logs of libraries do not help users, and controller-runtime prints a stack trace after 30 s without a logger.
	ctrllog.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "\ndemo failed: %v\n", err)
		os.Exit(1)
	}
}

// chapter is a part of a demonstration.
type chapter struct {
	title string
	tell  func(context.Context) error
}

// canary is the demonstration without an argument.
func canary(s *fixture) []chapter {
	return []chapter{
		{"A management cluster is set up, two application clusters join", s.join},
		{"A developer applies an Application", s.apply},
		{"Step by step to full on", s.rollOut},
		{"A new chart version: canary at 50/50 in both regions", s.canary},
		{"An SRE blocks all rollouts", s.block},
		{"Break-glass: the override lets one through, and leaves a trace", s.override},
		{"Abort: the contender is deleted", s.abort},
	}
}

// run goes from an empty machine to the last line, and cleans up.
func run(ctx context.Context, args []string) (err error) {
	regions := twoRegions
	chapters, shown := canary, "a first rollout, a canary over two regions, a block that held, an override that left its trace, a retreat\n"+
		"and an abort"
	switch {
	case len(args) == 1 && args[0] == "bluegreen":
		chapters, shown = blueGreen, "a preview beside production in two clusters, a gate, a switch in one turn, old Pods that stood by,\n"+
			"a block that held an automatic step, and a broken image that was taken back"
	case len(args) == 1 && args[0] == "checks":
		chapters, shown = checks, "a canary that went on by its checks in two clusters, and one with errors in one of them that went back\n"+
			"by itself"
	case len(args) == 1 && args[0] == "fleet":
		regions = fleetRegions
		chapters, shown = placeFleet, "a namespace that follows a fleet: a cluster that joined, one with a taint, one that failed and came\n"+
			"back, and an edit that was taken back"
	case len(args) == 1 && args[0] == "pipeline":
		chapters, shown = pipeline, "a shipyard that was pasted, a version that went through staging, two approvals, a block that held the\n"+
			"run, and a version with errors that was taken back"
	case len(args) == 1 && args[0] == "charts":
		chapters, shown = popular, "charts of others, unedited: a canary, twelve services in one rollout, a Deployment changed in place,\n"+
			"a block that held a StatefulSet at its partition, and a rollback that brought a password back"
	case len(args) == 1 && args[0] == "waves":
		regions = wavesRegions
		chapters, shown = waves, "a canary cluster with a check, an approval by a second person, production two clusters at a time, an\n"+
			"override for one cluster, a block that held one cluster, and a bad image that reached one cluster and was taken back"
	case len(args) > 0:
		return fmt.Errorf("unknown demonstration %q: there are bluegreen, checks, fleet, pipeline, charts and waves, and one without an "+
			"argument", args[0])
	}
	s, err := begin(ctx, os.Stdout, regions)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()

	for i, c := range chapters(s) {
		s.chapter(i+1, c.title)
		if err := c.tell(ctx); err != nil {
			s.showLogs()
			err = fmt.Errorf("chapter %d (%s): %w", i+1, c.title, err)
			fmt.Fprintf(os.Stderr, "\n%v\n", err)
			s.keep(ctx)
			return err
		}
	}
	s.sumUp(shown)
	s.keep(ctx)
	return nil
}
