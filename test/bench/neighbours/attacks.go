// SPDX-License-Identifier: Apache-2.0

package neighbours

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/bench/runs"
	"shipper.dev/shipper/test/bench/world"
)

const (
	// writers is how many requests of the attacker are under way at the same time.
	writers = 30
	// starters is how many runs are created at the same time.
	starters = 8
	// applications change all the time, each of parts ConfigMaps of partBytes: 7 MiB together.
	applications, parts, partBytes = 8, 8, 917504
	// pause is between two changes of one of them: content is taken after a second without changes, and after five in any case.
	pause = 500 * time.Millisecond
	// queries in one write.
	queries = 450
	// runBytes is the data of one run.
	runBytes = 200 << 10
)

// attacker is another tenant.
type attacker struct {
	client.WithWatch
	namespace string
	world     *world.World
	sent      atomic.Int64
}

// newAttacker makes the attacker, its Shipyards, and what its Applications select.
func newAttacker(ctx context.Context, w *world.World) (*attacker, error) {
	a := &attacker{namespace: "attacker", world: w}
	var err error
	if a.WithWatch, err = newUser(ctx, w, a.namespace); err != nil {
		return nil, err
	}
	if err := runs.MakeYards(ctx, w, a.namespace); err != nil {
		return nil, err
	}
	large := strings.Repeat("x", partBytes)
	return a, world.AtMost(4, applications*parts, func(i int) error {
		return a.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: a.namespace, Name: fmt.Sprintf("part-%d", i), Labels: map[string]string{"of": appName(i / parts)},
			},
			Data: map[string]string{"large": large},
		})
	})
}

func appName(i int) string { return fmt.Sprintf("app-%d", i) }

// attack is something that the attacker does until ctx ends. The function that begin returns waits for that, and says how often.
type attack struct {
	name, short string
	begin       func(ctx context.Context) (ended func() int64)
}

// attacks in the order in which they are tried. The last has an effect when it has ended, too: its Applications stay.
func (a *attacker) attacks() []attack {
	return []attack{
		{"writes that name kinds which are not served, 30 at a time", "kinds", a.repeat(writers, a.unserved)},
		{"writes of 450 queries, 30 at a time", "queries", a.repeat(writers, a.queries)},
		{"writes of the heaviest queries, 30 at a time", "heavy", a.repeat(writers, a.heavy)},
		{"runs of 200 KiB without end", "runs", a.repeat(starters, a.run)},
		{"changes of 8 Applications of 7 MiB", "content", a.content},
	}
}

// repeat does something without end, so often at the same time. Whether it is refused makes no difference.
func (a *attacker) repeat(atOnce int, do func(ctx context.Context, n int64) error) func(context.Context) func() int64 {
	return func(ctx context.Context) func() int64 {
		var all sync.WaitGroup
		before := a.sent.Load()
		for range atOnce {
			all.Go(func() {
				for ctx.Err() == nil {
					_ = do(ctx, a.sent.Add(1))
				}
			})
		}
		return func() int64 {
			all.Wait()
			return a.sent.Load() - before
		}
	}
}

// unserved names five kinds that no server has.
func (a *attacker) unserved(ctx context.Context, n int64) error {
	app := placing(a.world, a.namespace, fmt.Sprintf("a-%d", n), "a")
	app.Spec.Template.Resources.Select = nil
	for k := range int64(5) {
		selector := shipper.ResourceSelector{Group: "example.com", Kind: fmt.Sprintf("Kind%d", n*5+k), Name: "a"}
		app.Spec.Template.Resources.Select = append(app.Spec.Template.Resources.Select, selector)
	}
	return a.Create(ctx, app, client.DryRunAll)
}

// queries has many in one write, which is refused.
func (a *attacker) queries(ctx context.Context, n int64) error {
	return a.check(ctx, n, queries, "-", 4000)
}

// heavy has as many as one Check may have, each among the heaviest that are admitted.
func (a *attacker) heavy(ctx context.Context, n int64) error {
	return a.check(ctx, n, 5, `b=~"a.*b",`, 390)
}

// check creates a Check with queries of a text that is repeated: selectors, or operators.
func (a *attacker) check(ctx context.Context, n int64, queries int, text string, times int) error {
	c := &shipper.Check{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: fmt.Sprintf("c-%d", n)},
		Spec: shipper.CheckSpec{
			Prometheus: &shipper.PrometheusCheck{Queries: map[string]shipper.CheckQuery{}}, Pass: "q0 > 0.0",
		},
	}
	repeated := strings.Repeat(text, times)
	for q := range queries {
		query := fmt.Sprintf("a{%s} + %d", repeated, n*int64(queries)+int64(q))
		if text == "-" {
			query = fmt.Sprintf("%sa + %d", repeated, n*int64(queries)+int64(q))
		}
		c.Spec.Prometheus.Queries[fmt.Sprintf("q%d", q)] = shipper.CheckQuery(query)
	}
	return a.Create(ctx, c, client.DryRunAll)
}

// run starts a run with much data.
func (a *attacker) run(ctx context.Context, n int64) error {
	run := runs.Delivery(a.namespace, int(n))
	run.Spec.Data = shipper.FreeForm{"large": strings.Repeat("x", runBytes)}
	return a.Create(ctx, run)
}

// content has Applications whose content changes all the time.
func (a *attacker) content(ctx context.Context) func() int64 {
	var all sync.WaitGroup
	before := a.sent.Load()
	for i := range applications {
		all.Go(func() {
			_ = a.Create(ctx, placing(a.world, a.namespace, appName(i), ""))
			part := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: fmt.Sprintf("part-%d", i*parts)}}
			for ctx.Err() == nil {
				patch := fmt.Appendf(nil, `{"data":{"n":"%d"}}`, a.sent.Add(1))
				_ = a.Patch(ctx, part, client.RawPatch(types.MergePatchType, patch))
				select {
				case <-time.After(pause):
				case <-ctx.Done():
				}
			}
		})
	}
	return func() int64 {
		all.Wait()
		return a.sent.Load() - before
	}
}
