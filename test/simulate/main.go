// SPDX-License-Identifier: Apache-2.0

// Command simulate runs Shipper's reconciler against API servers in memory, for more Applications and clusters than fit on a machine
// as real ones, and reports how long things take, what memory they need and where the processors' time goes. docs/performance.md says
// what such figures are worth.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := simulation{out: os.Stdout}
	flag.IntVar(&s.applications, "applications", 100, "how many Applications there are, each on one to three clusters")
	flag.IntVar(&s.clusters, "clusters", 5, "how many application clusters there are")
	flag.IntVar(&s.replicas, "replicas", 1, "how many Pods an Application has in each of its clusters")
	flag.IntVar(&s.rounds, "rounds", 1, "how often all Applications are changed")
	flag.IntVar(&s.changes, "changes", 7, "how often one Application is changed, while all others rest")
	flag.IntVar(&s.atOnce, "at-once", 0, "how many Applications are under way at a time, when all are made or changed; 0: all of them")
	flag.IntVar(&s.workers, "workers", 8, "the reconciler's flag of that name")
	flag.DurationVar(&s.latency, "latency", 5*time.Millisecond, "how long every `answer` of an API server takes")
	flag.DurationVar(&s.pods, "pods", 500*time.Millisecond, "how long it takes until Pods are `ready`")
	flag.DurationVar(&s.rest, "rest", 30*time.Second, "for how `long` it is watched at rest")
	flag.DurationVar(&s.patience, "patience", 30*time.Minute, "how `long` a change of all Applications may take")
	flag.DurationVar(&s.every, "every", time.Minute, "how `often` it is told how far a change of all Applications is")
	flag.BoolVar(&s.placements, "placements", false, "Applications have a placement that all clusters are judged for, and no regions")
	flag.BoolVar(&s.resources, "resources", false, "Applications place a namespace and a ConfigMap of the management cluster, and no chart")
	flag.StringVar(&s.profiles, "profiles", "", "a `folder` for profiles of the reconciler")
	flag.Var(&s.waves, "waves", "`sizes` of waves, such as 20,30,50: Applications are on as many clusters, are rolled out wave after wave, "+
		"half of a wave at a time, and nothing else is measured. The goals are those of KubeFleet's published run, with -latency 2ms")
	flag.IntVar(&s.tries, "tries", 10, "with -waves, how often one Application is rolled out alone")
	reconciler := flag.String("reconciler", "", "") // this program again, as the reconciler
	flag.Parse()
	if len(s.waves) > 0 {
		s.clusters = s.waves.clusters()
	}
	if min(s.applications, s.clusters, s.changes, s.workers, s.tries) < 1 || min(s.rounds, s.atOnce) < 0 || s.every <= 0 {
		fmt.Fprintln(os.Stderr, "simulate: want 1 at least of Applications, clusters, changes, workers and tries, and 0 rounds and at once")
		os.Exit(2)
	}
	run := s.run
	if *reconciler != "" {
		run = func(ctx context.Context) error { return reconcile(ctx, *reconciler, s.workers) }
	}
	ctrl.SetLogger(logr.Discard())
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(1)
	}
}
