// SPDX-License-Identifier: Apache-2.0

package scale

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

// The goals of Automatic.
const (
	maxLag   = 250 * time.Millisecond // of 99 of 100, from due to requested
	maxSoak  = 0.2                    // percent of a core, while all soak
	draining = time.Minute            // for events about what led there, of which a few go out each second
	watching = time.Minute            // for which they are watched at rest
)

// Automatic is many Releases on one cluster that soak in their first step, and then go on by themselves.
type Automatic struct {
	// Releases is how many there are.
	Releases int
	// After is how long the first soaks: long enough that the last is there, and all were watched at rest, before. The others soak up to
	// Spread longer: a machine that does more than it can says nothing about one that does not.
	After, Spread time.Duration
}

// Run measures. All times are given to samples.
func (a Automatic) Run(ctx context.Context, out, samples io.Writer) (lines []table.Line, err error) {
	w, err := world.Begin(ctx, world.Options{Clusters: 1, Podless: true})
	defer func() { err = errors.Join(err, w.End()) }()
	if err != nil {
		return nil, err
	}
	sight, err := w.Look(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := a.begin(ctx, w)
	if err != nil {
		return nil, err
	}
	due := map[client.ObjectKey]time.Time{}
	if err := sight.Until(ctx, keys, func(_ *shipper.Application, rel *shipper.Release) bool {
		if !world.Achieved(rel, 0, 0) || rel.Status.Progress == nil || rel.Status.Progress.Next == nil {
			return false
		}
		due[client.ObjectKeyFromObject(rel)] = rel.Status.Progress.Next.Time.Time
		return true
	}); err != nil {
		return nil, err
	}
	first := time.Now().Add(a.After)
	for _, at := range due {
		if at.Before(first) {
			first = at
		}
	}
	fmt.Fprintf(out, "%d Releases soak; the first goes on in %s\n", len(due), time.Until(first).Round(time.Second))
	if _, err := w.AtRest(ctx, draining); err != nil {
		return nil, err
	}
	rest, err := w.AtRest(ctx, watching)
	if err != nil {
		return nil, err
	}
	if !time.Now().Before(first) {
		return nil, fmt.Errorf("the first Release went on before all were watched at rest: let them soak for longer than %s (-after)", a.After)
	}
	rest.Asked.Explain(out)
	late, err := a.late(ctx, sight, keys, due)
	if err != nil {
		return nil, err
	}
	row := fmt.Sprintf("automatic, %d Releases soak", a.Releases)
	return append(rest.Lines(row, maxSoak),
		table.Line{Row: "automatic", Of: "from due to requested, median", Ours: table.Median(late), Unit: table.Seconds},
		table.Line{Row: "automatic", Of: "from due to requested, 99 of 100", Ours: table.Percentile(late, 99), Unit: table.Seconds,
			Most: table.Goal(maxLag.Seconds())},
	), table.WriteSamples(samples, "Automatic", late)
}

// begin makes the Applications, each with a Release of no Pods.
func (a Automatic) begin(ctx context.Context, w *world.World) (keys []client.ObjectKey, err error) {
	for i := range a.Releases {
		keys = append(keys, client.ObjectKey{Namespace: fmt.Sprintf("soaks-%d", i), Name: "app"})
	}
	return keys, world.AtMost(writers, a.Releases, func(i int) error {
		if err := w.MakeNamespace(ctx, keys[i].Namespace, 1); err != nil {
			return err
		}
		half := world.Step("half", 50, 50, 50, 50)
		after := a.After + a.Spread*time.Duration(i)/time.Duration(a.Releases)
		half.After = shipper.Duration(fmt.Sprintf("%ds", int(after.Seconds())))
		return w.Management.Create(ctx, w.Application(keys[i].Namespace, 1, 0, half, fullOn))
	})
}

// late is how long after it was due each next step was seen to be requested.
func (a Automatic) late(ctx context.Context, sight *world.Sight, keys []client.ObjectKey, due map[client.ObjectKey]time.Time,
) (late []time.Duration, err error) {
	err = sight.Until(ctx, keys, func(_ *shipper.Application, rel *shipper.Release) bool {
		if rel == nil || rel.Spec.TargetStep == 0 {
			return false
		}
		late = append(late, time.Since(due[client.ObjectKeyFromObject(rel)]))
		return true
	})
	return late, err
}
