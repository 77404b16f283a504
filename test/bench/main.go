// SPDX-License-Identifier: Apache-2.0

// Command bench measures how fast Shipper is, and what it takes: each row beside a floor that is measured in the same run. It
// prints one table, and ends with status 1 when a goal is missed. docs/performance.md explains the rows.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"shipper.dev/shipper/test/bench/admission"
	"shipper.dev/shipper/test/bench/charts"
	"shipper.dev/shipper/test/bench/fairness"
	"shipper.dev/shipper/test/bench/neighbours"
	"shipper.dev/shipper/test/bench/rollout"
	"shipper.dev/shipper/test/bench/runs"
	"shipper.dev/shipper/test/bench/scale"
	"shipper.dev/shipper/test/bench/table"
)

// row is one of those that can be asked for.
type row struct {
	name string
	run  func(ctx context.Context, out, samples io.Writer) ([]table.Line, error)
}

func main() {
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) == 4 && os.Args[1] == admission.NoopCommand {
		if err := admission.ServeNoop(ctx, os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, "no-op webhook:", err)
			os.Exit(1)
		}
		return
	}
	wanted := flag.String("row", "all", "which `rows`, with commas between them")
	file := flag.String("o", "", "a `file` that is given all samples, for benchstat")
	var clusters, counts numbers = []int{1, 2, 5}, []int{100, 1000}
	flag.Var(&clusters, "clusters", "rollout: on how many clusters, in rising `order`")
	rounds := flag.Int("rounds", 7, "rollout, bluegreen, resources, wide, waves: how many upgrades are measured of each side")
	replicas := flag.Int("replicas", 10, "rollout, bluegreen, burst: how many Pods a workload has in each cluster")
	burst := flag.Int("burst", 100, "burst, resources: how many Applications are created at once")
	rest := flag.Duration("rest", 5*time.Minute, "burst, resources: how `long` what was rolled out is watched at rest")
	flag.Var(&counts, "applications", "growth: how many Applications there are, in rising `order`; restart and block: the last of them")
	of := flag.Int("of", 2, "growth, restart, block: how many clusters")
	across := flag.Int("across", 20, "wide, waves: how many clusters")
	automatic := scale.Automatic{}
	flag.IntVar(&automatic.Releases, "soaking", 1000, "automatic: how many Releases go on by themselves")
	flag.DurationVar(&automatic.After, "after", 4*time.Minute, "automatic: how `long` the first soaks before")
	flag.DurationVar(&automatic.Spread, "spread", 4*time.Minute, "automatic: how much `longer` the last soaks")
	checks := scale.Checks{}
	flag.IntVar(&checks.Releases, "checked", 1000, "checks: how many Releases are checked")
	flag.DurationVar(&checks.Window, "window", 2*time.Minute, "checks: how `long` they are watched")
	profiles := flag.String("profiles", "", "growth, wide, runs: a `folder` that is given profiles of Shipper, for go tool pprof")
	c := charts.Charts{}
	flag.IntVar(&c.Charts, "charts", 500, "charts: how many are in the index, of 20 versions each")
	flag.IntVar(&c.Renders, "renders", 1000, "charts: how often a chart is rendered")
	a := admission.Admission{}
	flag.IntVar(&a.Releases, "releases", 10000, "admission: how many Releases are known")
	flag.IntVar(&a.Pairs, "pairs", 400, "admission: how many pairs of writes are measured of each kind")
	f := fairness.Fairness{}
	flag.IntVar(&f.Applications, "edits", 1000, "fairness: how many Applications a team edits at once")
	flag.IntVar(&f.Rounds, "crowds", 3, "fairness: how often it does")
	n := neighbours.Neighbours{}
	flag.DurationVar(&n.Window, "attack", 12*time.Second, "neighbours: how `long` each attack goes on")
	r := runs.Runs{}
	flag.IntVar(&r.Services, "runs", 200, "runs: how many `services` are delivered at once, and then how many runs wait, up to 2000")
	flag.Parse()
	if min(f.Applications, f.Rounds, *rounds, *replicas, *burst, *of, *across, automatic.Releases, checks.Releases, c.Charts, c.Renders,
		a.Releases, a.Pairs, r.Services) < 1 {
		fmt.Fprintln(os.Stderr, "bench: of nothing that is measured there can be less than 1")
		os.Exit(2)
	}
	o := rollout.Options{Clusters: clusters, Rounds: *rounds, Replicas: int32(*replicas)}
	b := rollout.Burst{Applications: *burst, Replicas: int32(*replicas), Rest: *rest}
	g := scale.Growth{Applications: counts, Clusters: *of, Profiles: *profiles}
	r.Profiles = *profiles
	wide := rollout.Wide{Clusters: *across, Rounds: *rounds, Profiles: *profiles}
	waves := rollout.Waves{Clusters: *across, Rounds: *rounds}
	err := run(ctx, []row{
		{"rollout", func(ctx context.Context, out, samples io.Writer) ([]table.Line, error) {
			return rollout.Run(ctx, o, out, samples)
		}},
		{"bluegreen", rollout.BlueGreen{Rounds: *rounds, Replicas: int32(*replicas)}.Run},
		{"services", rollout.Services{Rounds: *rounds, Services: 12, Replicas: 2}.Run},
		{"resources", rollout.Resources{Rounds: *rounds, Applications: *burst, Rest: *rest}.Run},
		{"automatic", automatic.Run},
		{"checks", checks.Run},
		{"burst", func(ctx context.Context, out, _ io.Writer) ([]table.Line, error) { return b.Run(ctx, out) }},
		{"growth", func(ctx context.Context, out, _ io.Writer) ([]table.Line, error) { return g.Run(ctx, out) }},
		{"wide", func(ctx context.Context, _, samples io.Writer) ([]table.Line, error) { return wide.Run(ctx, samples) }},
		{"waves", func(ctx context.Context, _, samples io.Writer) ([]table.Line, error) { return waves.Run(ctx, samples) }},
		{"charts", func(ctx context.Context, _, samples io.Writer) ([]table.Line, error) { return c.Run(ctx, samples) }},
		{"admission", a.Run},
		{"fairness", f.Run},
		{"neighbours", n.Run},
		{"runs", r.Run},
	}, *wanted, *file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run runs the rows that are wanted, and prints what they found even when a later one fails.
func run(ctx context.Context, rows []row, wanted, file string) (err error) {
	samples := io.Discard
	if file != "" {
		f, err := os.Create(file)
		if err != nil {
			return err
		}
		defer f.Close()
		samples = f
	}
	names := strings.Split(wanted, ",")
	for _, name := range names {
		if name != "all" && !slices.ContainsFunc(rows, func(r row) bool { return r.name == name }) {
			return fmt.Errorf("there is no row %q", name)
		}
	}
	var lines []table.Line
	defer func() { err = errors.Join(err, table.Write(os.Stdout, lines)) }()
	for _, r := range rows {
		if wanted != "all" && !slices.Contains(names, r.name) {
			continue
		}
		found, err := r.run(ctx, os.Stdout, samples)
		if lines = append(lines, found...); err != nil {
			return fmt.Errorf("row %s: %w", r.name, err)
		}
	}
	return nil
}

// numbers is a flag: numbers from 1 on, in rising order, with commas between them.
type numbers []int

func (n *numbers) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(*n)), " ", ","), "[]")
}

func (n *numbers) Set(list string) error {
	*n = nil
	for s := range strings.SplitSeq(list, ",") {
		count, err := strconv.Atoi(s)
		if err != nil || count < 1 || len(*n) > 0 && count <= (*n)[len(*n)-1] {
			return errors.New("want numbers from 1 on, in rising order")
		}
		*n = append(*n, count)
	}
	return nil
}
