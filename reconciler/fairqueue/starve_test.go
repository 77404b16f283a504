// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestWhoIsHeldKeepsItsTurn has one namespace take its share all the time with what is under way, which takes long, and something that was
// at rest, beside another's thousand that were at rest too.
func TestWhoIsHeldKeepsItsTurn(t *testing.T) {
	for _, workers := range []int{1, 2, 4, 8} {
		made := newQueue(func(r reconcile.Request) string { return r.Name },
			func(_, application string) priority {
				if strings.HasPrefix(application, "busy") {
					return changed
				}
				return idle
			}, workers)("", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		q, ok := made.(*queue)
		if !ok {
			t.Fatalf("%T", made)
		}
		mild := priorityqueue.AddOpts{Priority: ptr.To(-100)}
		for i := range 2000 {
			q.AddWithOpts(mild, requests(fmt.Sprint("crowd/rest-", i))...)
		}
		for i := range 2 * workers {
			q.Add(requests(fmt.Sprint("own/busy-", i))[0])
		}
		at, passes := map[reconcile.Request]int{}, 0 // when they end
		for now := 0; ; now++ {
			if now == 5 {
				passes = 0
				q.AddWithOpts(mild, requests("own/rest")...)
			}
			for request, end := range at {
				if end > now {
					continue
				}
				if strings.HasPrefix(request.Name, "busy") {
					q.Add(request) // it never ends
				}
				q.Done(request)
				delete(at, request)
			}
			for len(at) < workers && q.Len() > 0 {
				request, _ := q.Get()
				passes++
				at[request] = now + 1
				if strings.HasPrefix(request.Name, "busy") {
					at[request] = now + 20
				}
			}
			if _, ok := at[requests("own/rest")[0]]; ok {
				break
			}
			if passes > 900 {
				t.Errorf("with %d workers what was at rest waits for the whole of another's", workers)
				break
			}
		}
		t.Logf("%d workers: %d passes", workers, passes)
	}
}

// TestWhoIsAtRestDoesNotWaitUntilAllOthersAreParked has four workers, of which one may look at what rests, and always something under way:
// that one ends and another is called makes it the next at rest to be worked on.
func TestWhoIsAtRestDoesNotWaitUntilAllOthersAreParked(t *testing.T) {
	q := begin(t, nil)
	for i := range 1000 {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(-100)}, requests(fmt.Sprintf("crowd/rests%d-0-0", i))...)
	}
	for _, request := range requests("own/moves1-0-0 own/moves2-0-0") {
		q.Add(request)
	}
	var rests []reconcile.Request // that are worked on, each as long as three passes of what is under way
	for passes, since := 0, 0; passes < 100; passes++ {
		request, _, _ := q.GetWithPriority()
		if since++; strings.HasPrefix(request.Name, "rests") {
			rests, since = append(rests, request), 0
			continue
		}
		q.Add(request) // it never ends
		q.Done(request)
		if since == 3 && len(rests) > 0 {
			q.Done(rests[0])
			rests = rests[1:]
		}
		if since > 10 {
			t.Fatalf("nothing that was at rest is worked on in %d passes", since)
		}
	}
}
