// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestModel has workers work on what many add at once: at the end nothing is left, no namespace ever had more than its share, nothing was
// worked on twice at a time, and of everything there was a pass that began after it was last added.
func TestModel(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		synctest.Test(t, func(t *testing.T) { model(t, 1+r.IntN(9), 1+r.IntN(4), r.Uint64()) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func model(t *testing.T, workers, namespaces int, seed uint64) {
	t.Helper()
	most := max(1, workers*3/4)
	var judged atomic.Uint64
	q := newQueue(t, workers, func(r reconcile.Request) Priority {
		return Priority(judged.Add(uint64(len(r.Name)*7+1)) % uint64(priorities))
	})
	var mu sync.Mutex
	inside, at, wanted := map[string]int{}, map[reconcile.Request]bool{}, map[reconcile.Request]bool{}
	var working sync.WaitGroup
	var added sync.WaitGroup
	for w := range workers {
		working.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(w)+100))
			for {
				request, _, shut := q.GetWithPriority()
				if shut {
					return
				}
				mu.Lock()
				inside[request.Namespace]++
				if inside[request.Namespace] > most {
					t.Errorf("%d workers of %d for %s", inside[request.Namespace], workers, request.Namespace)
				}
				if at[request] {
					t.Errorf("%s is worked on twice", request)
				}
				at[request] = true
				delete(wanted, request)
				mu.Unlock()
				switch r.IntN(4) {
				case 0:
					time.Sleep(time.Duration(r.IntN(100)) * time.Microsecond)
				case 1:
					runtime.Gosched()
				}
				mu.Lock()
				inside[request.Namespace]--
				delete(at, request)
				mu.Unlock()
				q.Done(request)
			}
		})
	}
	for p := range 6 {
		added.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(p)+1))
			for range 60 {
				request := requests(fmt.Sprintf("n%d/a%d", r.IntN(namespaces), r.IntN(12)))[0]
				mu.Lock()
				wanted[request] = true
				mu.Unlock()
				switch r.IntN(4) {
				case 0:
					q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(-100)}, request)
				case 1:
					q.AddAfter(request, time.Duration(r.IntN(200))*time.Microsecond)
				case 2:
					q.Len()
					q.Add(request)
				default:
					q.Add(request)
				}
				if r.IntN(5) == 0 {
					time.Sleep(time.Duration(r.IntN(50)) * time.Microsecond)
				}
			}
		})
	}
	added.Wait()
	time.Sleep(5 * time.Second)
	synctest.Wait()
	if len(wanted) != 0 || len(at) != 0 {
		t.Errorf("%d are never worked on (%d workers, %d namespaces)", len(wanted), workers, namespaces)
	}
	q.ShutDown()
	working.Wait()
	o, waiting := q.order, 0
	for p := range o.levels {
		waiting += len(o.levels[p].order) + len(o.levels[p].waiting) + o.levels[p].length
	}
	if n := o.Len(); n+len(o.at)+len(o.running)+len(o.marked)+waiting != 0 {
		t.Errorf("left behind: len %d at %d running %v marked %d waiting %d", n, len(o.at), o.running, len(o.marked), waiting)
	}
}
