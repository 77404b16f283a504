// SPDX-License-Identifier: Apache-2.0

// Command rollout measures how long rollouts take, beside a program written by hand that makes only the calls no rollout can
// do without: the floor. Both upgrade the same workload on the same real control planes, one after the other, and take turns
// in who is first. It ends with status 1 when a goal is missed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// options say what is measured.
type options struct {
	clusters []int // of the row rollout, in rising order
	rounds   int
	replicas int32
	rest     time.Duration
	out      string
}

func main() {
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	clusters := flag.String("clusters", "1,2,5", "on how many clusters rollouts are measured")
	flag.IntVar(&o.rounds, "rounds", 7, "how many upgrades are measured of each side")
	replicas := flag.Int("replicas", 10, "how many Pods the workload has in each cluster")
	flag.DurationVar(&o.rest, "rest", 20*time.Second, "how long what was rolled out is watched at rest")
	flag.StringVar(&o.out, "o", "", "a file that is given all samples, for benchstat")
	flag.Parse()
	o.replicas = int32(*replicas)
	for n := range strings.SplitSeq(*clusters, ",") {
		count, err := strconv.Atoi(n)
		if err != nil || count < 1 || len(o.clusters) > 0 && count <= o.clusters[len(o.clusters)-1] {
			fmt.Fprintf(os.Stderr, "-clusters %s: want numbers from 1 on, in rising order\n", *clusters)
			os.Exit(2)
		}
		o.clusters = append(o.clusters, count)
	}
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	samples := io.Discard
	if o.out != "" {
		file, err := os.Create(o.out)
		if err != nil {
			return err
		}
		defer file.Close()
		samples = file
	}
	w, err := begin(ctx, o.clusters[len(o.clusters)-1])
	defer func() { err = errors.Join(err, w.end()) }()
	if err != nil {
		return err
	}
	var results []result
	for _, n := range o.clusters {
		r, err := w.compare(ctx, n, o)
		if err != nil {
			return fmt.Errorf("rolling out on %d clusters: %w", n, err)
		}
		if err := r.writeSamples(samples); err != nil {
			return err
		}
		results = append(results, r)
	}
	resting, err := w.atRest(ctx, o.rest)
	if err != nil {
		return err
	}
	return report(os.Stdout, results, resting)
}
