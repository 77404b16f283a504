// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"shipper.dev/shipper/reconciler/fleet"
)

// TestNobodyWaitsLongForAChart has a rendering that takes some time, and a pass that asks for it.
func TestNobodyWaitsLongForAChart(t *testing.T) {
	broken := errors.New("broken")
	tests := map[string]struct {
		takes time.Duration
		err   error
		waits time.Duration
		later bool // the pass ends without
	}{
		"one from memory":            {0, nil, 0, false},
		"one from a slow repository": {time.Minute, nil, renderTimeout, true},
		"one that is broken":         {0, broken, 0, false},
		"one that turns out broken":  {time.Minute, broken, renderTimeout, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				req := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "web-1"}}
				q := workqueue.NewTypedRateLimitingQueue(fleet.RateLimiter())
				defer q.ShutDown()
				a, renders := newBackgroundRenderer(), 0
				if err := a.source().Start(t.Context(), q); err != nil {
					t.Fatal(err)
				}
				ask := func(fingerprint string) ([]wanted, error) {
					return a.get(t.Context(), req, fingerprint, func() ([]wanted, error) {
						renders++
						time.Sleep(tc.takes)
						return make([]wanted, 3), tc.err
					})
				}
				began := time.Now()
				objects, err := ask("a")
				if waited := time.Since(began); waited != tc.waits || errors.Is(err, errRendering) != tc.later {
					t.Errorf("it waited %s for %v", waited, err)
				}
				if tc.later {
					again, over := q.Get() // when it is done
					if waited := time.Since(began); over || again != req || waited != tc.takes {
						t.Errorf("%v is made again after %s", again, waited)
					}
					q.Done(again)
					objects, err = ask("a")
				}
				if len(objects) != 3 || !errors.Is(err, tc.err) || renders != 1 {
					t.Errorf("got %d objects and %v of %d renderings", len(objects), err, renders)
				}
				a.forget(req)
				_, _ = ask("b")
				a.forget(req) // nobody waits for it any more
				time.Sleep(time.Hour)
				synctest.Wait()
				if q.Len() != 0 || len(a.jobs) != 0 || renders != 2 {
					t.Errorf("%d requests, %d jobs, %d renderings are left", q.Len(), len(a.jobs), renders)
				}
			})
		})
	}
}
