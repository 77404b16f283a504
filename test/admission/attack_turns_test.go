// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
)

// writers is how many writes of an attacker are under way at the same time.
const writers = 30

// floods has what writers of one namespace send again and again, each time something else.
func floods(ns string) map[string]func(i int64) client.Object {
	check := func(i int64, text string) client.Object {
		queries := map[string]shipper.CheckQuery{}
		for q := range 5 {
			queries[fmt.Sprintf("q%d", q)] = shipper.CheckQuery(fmt.Sprintf("%s + %d", text, i*5+int64(q)))
		}
		return &shipper.Check{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("c%d", i)},
			Spec:       shipper.CheckSpec{Prometheus: &shipper.PrometheusCheck{Queries: queries}, Pass: "q0 > 0.0"},
		}
	}
	return map[string]func(i int64) client.Object{
		"queries of thousands of operators": func(i int64) client.Object { return check(i, strings.Repeat("-", 4000)+"a") },
		"the heaviest queries that are admitted": func(i int64) client.Object {
			return check(i, "a{"+strings.Repeat(`b=~"a.*b",`, 390)+"}")
		},
		"kinds that are not served": func(i int64) client.Object {
			var select_ []shipper.ResourceSelector
			for k := range 5 {
				select_ = append(select_, shipper.ResourceSelector{Group: "example.com", Kind: fmt.Sprintf("Kind%d", i*5+int64(k)), Name: "a"})
			}
			app := ask.Application(ask.Placing(select_...))
			app.Namespace, app.Name, app.UID = ns, fmt.Sprintf("a%d", i), ""
			return app
		},
	}
}

// TestWritesOfOneTenantHoldUpNobody has one tenant write without end what is costly to judge. Each write of another tenant that needs the
// same is admitted meanwhile. How long these take is shown and not judged: webhook/bounds and webhook/resources require the order.
func TestWritesOfOneTenantHoldUpNobody(t *testing.T) {
	attackers, ns := namespace(t), namespace(t)
	u, mallory := as(t, "dev"), as(t, "mallory")
	var wrote atomic.Int64
	own := func() {
		var took []time.Duration
		for range 10 {
			n := wrote.Add(1)
			c := &shipper.Check{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "own"},
				Spec: shipper.CheckSpec{
					Prometheus: &shipper.PrometheusCheck{Queries: map[string]shipper.CheckQuery{
						"new": shipper.CheckQuery(fmt.Sprintf("sum(up) + %d", n)),
					}},
					Pass: fmt.Sprintf("new > %d.0", n),
				},
			}
			app := ask.Application(ask.Placing(shipper.ResourceSelector{Group: "example.net", Kind: fmt.Sprintf("Own%d", n), Name: "a"}))
			app.Namespace, app.Name, app.UID = ns, "own", ""
			began := time.Now()
			if err := u.Create(t.Context(), c, client.DryRunAll); err != nil {
				t.Errorf("a Check: %v", err)
			}
			checkRefused(t, u.Create(t.Context(), app, client.DryRunAll), refused{422, "this API server does not serve Own"})
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		t.Logf("two writes took %s, and %s at most", took[len(took)/2], took[len(took)-1])
	}
	own()
	for sentence, next := range floods(attackers) {
		t.Run(sentence, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var sent atomic.Int64
			var all sync.WaitGroup
			for range writers {
				all.Go(func() {
					for ctx.Err() == nil {
						_ = mallory.Create(ctx, next(sent.Add(1)), client.DryRunAll) // refused or not
					}
				})
			}
			own()
			cancel()
			all.Wait()
			if n := sent.Load(); n < writers {
				t.Errorf("%d writes were sent: the attack did not happen", n)
			} else {
				t.Logf("beside %d writes of another tenant", n)
			}
		})
	}
}
