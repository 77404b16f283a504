// SPDX-License-Identifier: Apache-2.0

// Command soak edits many Applications at random for a long time, on real control planes, and then looks whether Shipper is as it
// was before: memory and goroutines, what its logs say again and again, and that every Application has come to rest. It ends with
// status 1 on a miss. docs/performance.md explains what it does.
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
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := soak{out: os.Stdout}
	flag.IntVar(&s.applications, "applications", 1000, "how many Applications there are")
	flag.IntVar(&s.clusters, "clusters", 2, "how many application clusters, 2 at least: one of them is taken down for a while")
	flag.DurationVar(&s.time, "for", 20*time.Minute, "for how `long` they are edited")
	flag.DurationVar(&s.every, "every", 250*time.Millisecond, "`time` between two edits, on average")
	flag.Uint64Var(&s.seed, "seed", 0, "of what is random; 0: a new one")
	flag.DurationVar(&s.forget, "forget", forgotten,
		"how `long` nothing is edited before memory is looked at; with less than the default it is reported and not judged")
	flag.StringVar(&s.logs, "logs", "", "a `folder` for the logs of Shipper")
	flag.StringVar(&s.profiles, "profiles", "", "a `folder` for profiles of its memory before and after, for go tool pprof")
	flag.Parse()
	if s.seed == 0 {
		s.seed = uint64(time.Now().UnixNano())
	}
	if s.clusters < 2 || s.applications < 1 || s.every <= 0 || s.time <= 0 {
		fmt.Fprintln(os.Stderr, "soak: want 2 clusters and 1 Application at least, edited for some time, with some time between edits")
		os.Exit(2)
	}
	if err := s.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}
