// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"testing"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// crowd is how many edits one team makes at once.
const crowd = 1000

// BenchmarkCrowd has one team make 1,000 edits, then another team one, or the first an abort, and counts how many of the 1,000 are
// worked on before that. The time is that of all: adding, taking and being done.
func BenchmarkCrowd(b *testing.B) {
	queues := map[string]New[reconcile.Request]{
		"fair": Objects(8, func(r reconcile.Request) Priority {
			if r.Name == "abort" {
				return Urgent
			}
			return Low
		}),
		"first-come": func(
			_ string, retries workqueue.TypedRateLimiter[reconcile.Request],
		) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return workqueue.NewTypedRateLimitingQueue(retries)
		},
	}
	var edits []reconcile.Request
	for i := range crowd {
		edits = append(edits, requests(fmt.Sprint("crowd/app-", i))...)
	}
	for _, who := range []string{"other/edit", "crowd/abort"} {
		for kind, newQueue := range queues {
			b.Run(who+"/"+kind, func(b *testing.B) {
				waited := 0
				for b.Loop() {
					q := newQueue("", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
					for _, request := range append(edits, requests(who)...) {
						q.Add(request)
					}
					for i := range crowd + 1 {
						request, _ := q.Get()
						if request.String() == who {
							waited = i
						}
						q.Done(request)
					}
					q.ShutDown()
				}
				b.ReportMetric(float64(waited), "before")
			})
		}
	}
}
