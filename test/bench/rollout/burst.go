// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/bench/table"
	"shipper.dev/shipper/test/bench/world"
)

const (
	burstClusters = 2
	maxBurst      = 2.0 // to the floor
	// writers is how many writes of ours and of the floor's are under way at a time, when all Applications are written at once.
	writers = 32
)

// Burst is many Applications created at once, on two clusters, brought to their first step, with one Pod and no traffic, and from
// there to all of their capacity and traffic.
type Burst struct {
	// Applications is how many.
	Applications int
	// Replicas is how many Pods each has in each cluster.
	Replicas int32
	// Rest is how long all are watched at rest afterwards.
	Rest time.Duration
}

// Run measures.
func (b Burst) Run(ctx context.Context, out io.Writer) (lines []table.Line, err error) {
	w, err := world.Begin(ctx, world.Options{Clusters: burstClusters})
	defer func() { err = errors.Join(err, w.End()) }()
	if err != nil {
		return nil, err
	}
	floor, err := b.floor(ctx, w)
	if err != nil {
		return nil, fmt.Errorf("the floor: %w", err)
	}
	before, err := w.Count()
	if err != nil {
		return nil, err
	}
	ours, err := b.ours(ctx, w)
	if err != nil {
		return nil, err
	}
	after, err := w.Count()
	if err != nil {
		return nil, err
	}
	asked, each := after.Minus(before), float64(b.Applications)
	fmt.Fprintf(out, "what Shipper asked for to roll out %d Applications:\n", b.Applications)
	asked.Explain(out)
	rest, err := w.AtRest(ctx, b.Rest)
	of := fmt.Sprintf("%d Applications at once, 2 clusters, ", b.Applications)
	beside := func(what string, ours, floor time.Duration) table.Line {
		return table.Line{
			Row: "burst", Of: of + what, Ours: ours.Seconds(), Floor: floor.Seconds(), Unit: table.Seconds,
		}
	}
	both := beside("both", ours[0]+ours[1], floor[0]+floor[1])
	both.Most = table.Goal(maxBurst)
	return append([]table.Line{
		beside("to step 0", ours[0], floor[0]), beside("then full on", ours[1], floor[1]), both,
		{Row: "burst", Of: "requests to management for each Application", Ours: float64(asked.Management) / each},
		{Row: "burst", Of: "requests to an application cluster for each", Ours: float64(asked.Application) / each},
	}, rest.Lines("rest", maxCores)...), err
}

// ours is how long Shipper takes to the first step of all, and from there to the last of all.
func (b Burst) ours(ctx context.Context, w *world.World) (took [2]time.Duration, err error) {
	sight, err := w.Look(ctx)
	if err != nil {
		return took, err
	}
	var apps []*shipper.Application
	var keys []client.ObjectKey
	for i := range b.Applications {
		app := w.Application(fmt.Sprintf("burst-%d", i), burstClusters, b.Replicas,
			world.Step("staging", 100, 1, 100, 0), world.Step("full on", 0, 100, 0, 100))
		apps, keys = append(apps, app), append(keys, client.ObjectKeyFromObject(app))
	}
	err = world.AtMost(writers, len(apps), func(i int) error { return w.MakeNamespace(ctx, keys[i].Namespace, burstClusters) })
	if err != nil {
		return took, err
	}
	for step, write := range []func(i int) error{
		func(i int) error { return w.Management.Create(ctx, apps[i]) },
		func(i int) error { return w.Advance(ctx, sight.Newest(keys[i]), 1) },
	} {
		ctx, cancel := context.WithTimeoutCause(ctx, 10*patience, fmt.Errorf("step %d takes longer than %s", step, 10*patience))
		defer cancel()
		began := time.Now()
		if err := world.AtMost(writers, len(apps), write); err != nil {
			return took, err
		}
		err := sight.Until(ctx, keys, func(_ *shipper.Application, rel *shipper.Release) bool { return world.Achieved(rel, 0, int32(step)) })
		if err != nil {
			return took, err
		}
		took[step] = time.Since(began)
		fmt.Printf("%d Applications, step %d: ours %s\n", len(apps), step, took[step].Round(time.Millisecond))
	}
	return took, nil
}

// floor is how long the program written by hand takes for the same.
func (b Burst) floor(ctx context.Context, w *world.World) (took [2]time.Duration, err error) {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	floors := make([]*floor, b.Applications*burstClusters)
	for c := range burstClusters {
		factory, err := look(watching, w.Clusters[c], "")
		if err != nil {
			return took, err
		}
		err = world.AtMost(writers, b.Applications, func(i int) (err error) {
			floors[c*b.Applications+i], err = newFloorIn(ctx, w.Clusters[c], factory, fmt.Sprintf("floor-%d", i), b.Replicas)
			return err
		})
		if err != nil {
			return took, err
		}
	}
	for step, do := range []func(*floor) error{
		func(f *floor) error {
			if err := f.makeService(ctx); err != nil {
				return err
			}
			return f.install(ctx, 0, 1)
		},
		func(f *floor) error {
			if err := f.scale(ctx, 0, b.Replicas); err != nil {
				return err
			}
			return f.enable(ctx, 0, int(b.Replicas))
		},
	} {
		began := time.Now()
		if err := world.InParallel(len(floors), func(i int) error { return do(floors[i]) }); err != nil {
			return took, fmt.Errorf("step %d: %w", step, err)
		}
		took[step] = time.Since(began)
		fmt.Printf("%d Applications, step %d: floor %s\n", b.Applications, step, took[step].Round(time.Millisecond))
	}
	return took, nil
}
