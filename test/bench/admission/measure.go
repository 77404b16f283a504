// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/test/bench/table"
	"shipper.dev/shipper/test/pod"
)

// rounds is how many parts a line is divided into, to see how far their ratios are apart.
const rounds = 5

// kind is one kind of write.
type kind struct {
	name string
	// write does it for the i-th Application of a namespace, the n-th time.
	write func(ctx context.Context, w *env, namespace string, i, n int) error
}

var kinds = []kind{
	{"edit", func(ctx context.Context, w *env, namespace string, i, n int) error {
		app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("app-%d", i)}}
		patch := fmt.Appendf(nil, `{"spec":{"template":{"values":{"replicaCount":%d}}}}`, n)
		return w.client.Patch(ctx, app, client.RawPatch(types.MergePatchType, patch))
	}},
	{"targetStep", func(ctx context.Context, w *env, namespace string, i, n int) error {
		rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.moved[namespace][i]}}
		patch := fmt.Appendf(nil, `{"spec":{"targetStep":%d}}`, n%2)
		return w.client.Patch(ctx, rel, client.RawPatch(types.MergePatchType, patch))
	}},
}

// sample is how long one pair took.
type sample struct{ noop, ours time.Duration }

// samples are the pairs of a row.
type samples []sample

// lines report pairs: the medians, and the slowest of a hundred. Only one at a time has a goal: with more the machine is
// full, and what takes how long says little.
func (s samples) lines(of string, workers int, to io.Writer) ([]table.Line, error) {
	var noop, ours []time.Duration
	for _, pair := range s {
		noop, ours = append(noop, pair.noop), append(ours, pair.ours)
	}
	name := "Admission/of=" + strings.NewReplacer(", ", "/", " ", "-").Replace(of)
	if err := errors.Join(
		table.WriteSamples(to, name+"/side=noop", noop), table.WriteSamples(to, name+"/side=shipper", ours)); err != nil {
		return nil, err
	}
	median := table.Line{Row: "admission", Of: of + s.spread(), Ours: table.Median(ours), Floor: table.Median(noop), Unit: table.Seconds}
	if workers == 1 {
		median.Most = table.Goal(maxRatio)
	}
	return []table.Line{median, {
		Row: "admission", Of: of + ", 99 of 100", Ours: table.Percentile(ours, 99), Floor: table.Percentile(noop, 99),
		Unit: table.Seconds,
	}}, nil
}

// spread is how far the ratios of parts are apart.
func (s samples) spread() string {
	least, most := 0.0, 0.0
	for part := range slices.Chunk(s, max(1, (len(s)+rounds-1)/rounds)) {
		var noop, ours []time.Duration
		for _, pair := range part {
			noop, ours = append(noop, pair.noop), append(ours, pair.ours)
		}
		ratio := table.Median(ours) / table.Median(noop)
		if least == 0 || ratio < least {
			least = ratio
		}
		most = max(most, ratio)
	}
	return fmt.Sprintf(" (%.2f to %.2f)", least, most)
}

// measure sends pairs of writes, each to one side and then to the other; which is first takes turns.
func (w *env) measure(ctx context.Context, k kind, workers, pairs int) (samples, error) {
	if err := w.findMoved(ctx); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var all samples
	var jobs []func() error
	for i := range workers {
		jobs = append(jobs, func() error {
			mine, err := w.pairs(ctx, k, i, max(pairs/workers, rounds))
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mine...)
			return err
		})
	}
	if err := inParallel(jobs); err != nil {
		return nil, fmt.Errorf("%s: %w", k.name, err)
	}
	return all, nil
}

func (w *env) pairs(ctx context.Context, k kind, i, n int) ([]sample, error) {
	const warmUp = 10
	var out []sample
	for range n + warmUp {
		w.writes[i]++
		var s sample
		sides := []string{noop, ours}
		if w.writes[i]%2 == 0 {
			slices.Reverse(sides)
		}
		for _, side := range sides {
			began := time.Now()
			if err := k.write(ctx, w, side, i, w.writes[i]); err != nil {
				return nil, err
			}
			if took := time.Since(began); side == noop {
				s.noop = took
			} else {
				s.ours = took
			}
		}
		out = append(out, s)
	}
	return out[warmUp:], nil
}

// findMoved remembers which Releases are moved.
func (w *env) findMoved(ctx context.Context) error {
	if w.moved != nil {
		return nil
	}
	w.moved = map[string][]string{}
	for _, namespace := range []string{ours, noop} {
		for i := range concurrency {
			rel, err := w.newest(ctx, namespace, i)
			if err != nil {
				return err
			}
			w.moved[namespace] = append(w.moved[namespace], rel.Name)
		}
	}
	return nil
}

// freshness makes blocks one after the other, asks every replica until it refuses, and reports how long that takes from the
// 201 on.
func (w *env) freshness(ctx context.Context, n int) ([]table.Line, error) {
	var took []time.Duration
	for i := range n {
		b := &shipper.RolloutBlock{Spec: ask.Block("x/y").Spec}
		b.Namespace, b.Name = ours, fmt.Sprintf("fresh-%d", i)
		if err := w.client.Create(ctx, b); err != nil {
			return nil, err
		}
		began := time.Now()
		var jobs []func() error
		for _, r := range w.replicas {
			jobs = append(jobs, func() error { return w.refuses(ctx, r, b) })
		}
		if err := inParallel(jobs); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
		if err := w.client.Delete(ctx, b); err != nil {
			return nil, err
		}
	}
	of := fmt.Sprintf("a RolloutBlock holds on all of %d replicas", len(w.replicas))
	return []table.Line{
		{Row: "admission", Of: of, Ours: table.Median(took), Unit: table.Seconds},
		{
			Row: "admission", Of: of + ", 99 of 100", Ours: table.Percentile(took, 99), Unit: table.Seconds,
			Most: table.Goal(maxFresh.Seconds()),
		},
	}, nil
}

// refuses asks r until it refuses for b.
func (w *env) refuses(ctx context.Context, r *pod.Replica, b *shipper.RolloutBlock) error {
	app := ask.Application(func(app *shipper.Application) { app.Namespace = b.Namespace })
	path, err := pod.ReviewPath(ctx, w.client, "/validate-application?timeout=5s")
	if err != nil {
		return err
	}
	for {
		answer, err := r.Review(ctx, path, &ask.Create("dev", app).AdmissionRequest)
		if err != nil {
			return err
		}
		if !answer.Allowed && strings.Contains(answer.Result.Message, b.Namespace+"/"+b.Name+" ") {
			return nil
		}
	}
}
