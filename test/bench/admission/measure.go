// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/test/pod"
)

// rounds is how many parts a row is divided into, to see how far their ratios are apart.
const rounds = 5

// kind is one kind of write.
type kind struct {
	name string
	// write does it for the i-th Application of a namespace, the n-th time.
	write func(ctx context.Context, w *world, namespace string, i, n int) error
}

var kinds = []kind{
	{"edit", func(ctx context.Context, w *world, namespace string, i, n int) error {
		app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("app-%d", i)}}
		patch := fmt.Appendf(nil, `{"spec":{"template":{"values":{"replicaCount":%d}}}}`, n)
		return w.client.Patch(ctx, app, client.RawPatch(types.MergePatchType, patch))
	}},
	{"targetStep", func(ctx context.Context, w *world, namespace string, i, n int) error {
		rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.moved[namespace][i]}}
		patch := fmt.Appendf(nil, `{"spec":{"targetStep":%d}}`, n%2)
		return w.client.Patch(ctx, rel, client.RawPatch(types.MergePatchType, patch))
	}},
}

// sample is how long one pair took.
type sample struct{ noop, ours time.Duration }

// row is what was measured.
type row struct {
	noop, ours  [2]time.Duration // p50, p99
	ratio       float64          // of the medians
	least, most float64          // of the rounds
}

// String is the row as it is printed.
func (r row) String() string {
	ms := func(d time.Duration) string { return fmt.Sprintf("%6.2f ms", float64(d.Microseconds())/1000) }
	return fmt.Sprintf("%s %s  %s %s  %6.2f     (%.2f to %.2f)", ms(r.noop[0]), ms(r.noop[1]), ms(r.ours[0]), ms(r.ours[1]),
		r.ratio, r.least, r.most)
}

// measure sends pairs of writes, each to one side and then to the other; which is first takes turns.
func (w *world) measure(ctx context.Context, k kind, workers, pairs int) (row, error) {
	if err := w.findMoved(ctx); err != nil {
		return row{}, err
	}
	var mu sync.Mutex
	var samples []sample
	var jobs []func() error
	for i := range workers {
		jobs = append(jobs, func() error {
			mine, err := w.pairs(ctx, k, i, max(pairs/workers, rounds))
			mu.Lock()
			defer mu.Unlock()
			samples = append(samples, mine...)
			return err
		})
	}
	if err := inParallel(jobs); err != nil {
		return row{}, fmt.Errorf("%s: %w", k.name, err)
	}
	return summary(samples), nil
}

func (w *world) pairs(ctx context.Context, k kind, i, n int) ([]sample, error) {
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
func (w *world) findMoved(ctx context.Context) error {
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

func summary(samples []sample) row {
	r := row{}
	r.noop, r.ours, r.ratio = quantiles(samples)
	for part := range slices.Chunk(samples, max(1, (len(samples)+rounds-1)/rounds)) {
		_, _, ratio := quantiles(part)
		if r.least == 0 || ratio < r.least {
			r.least = ratio
		}
		r.most = max(r.most, ratio)
	}
	return r
}

func quantiles(samples []sample) (noop, ours [2]time.Duration, ratio float64) {
	var a, b []time.Duration
	for _, s := range samples {
		a, b = append(a, s.noop), append(b, s.ours)
	}
	slices.Sort(a)
	slices.Sort(b)
	for i, percent := range []int{50, 99} {
		noop[i], ours[i] = a[len(a)*percent/100], b[len(b)*percent/100]
	}
	return noop, ours, float64(ours[0]) / float64(noop[0])
}

// freshness makes blocks one after the other, asks every replica until it refuses, and tells how long that takes from the
// 201 on for 99 of 100.
func (w *world) freshness(ctx context.Context, n int) (time.Duration, error) {
	var took []time.Duration
	for i := range n {
		b := &shipper.RolloutBlock{Spec: ask.Block("x/y").Spec}
		b.Namespace, b.Name = ours, fmt.Sprintf("fresh-%d", i)
		if err := w.client.Create(ctx, b); err != nil {
			return 0, err
		}
		began := time.Now()
		var jobs []func() error
		for _, r := range w.replicas {
			jobs = append(jobs, func() error { return refuses(ctx, r, b) })
		}
		if err := inParallel(jobs); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
		if err := w.client.Delete(ctx, b); err != nil {
			return 0, err
		}
	}
	slices.Sort(took)
	p50, p99 := took[len(took)/2], took[len(took)*99/100]
	fmt.Printf("\na RolloutBlock holds on all of %d replicas after: p50 %s, p99 %s, longest %s (%d blocks)\n", len(w.replicas),
		p50.Round(10*time.Microsecond), p99.Round(10*time.Microsecond), took[len(took)-1].Round(10*time.Microsecond), n)
	return p99, nil
}

// refuses asks r until it refuses for b.
func refuses(ctx context.Context, r *pod.Replica, b *shipper.RolloutBlock) error {
	app := ask.Application(func(app *shipper.Application) { app.Namespace = b.Namespace })
	for {
		answer, err := r.Review(ctx, "/validate-application?timeout=5s", &ask.Create("dev", app).AdmissionRequest)
		if err != nil {
			return err
		}
		if !answer.Allowed && strings.Contains(answer.Result.Message, b.Namespace+"/"+b.Name+" ") {
			return nil
		}
	}
}
