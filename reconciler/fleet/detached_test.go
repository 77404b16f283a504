// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// workerPool is workers of a reconciler, as a controller has them.
type workerPool struct {
	p *Slots
	q queue
	// passes is how many passes are made of each request, and most the largest number of one at the same time.
	mu        sync.Mutex
	passes    map[string]int
	under     map[string]int
	mostUnder int
	errors    []string
}

// newWorkerPool has workers make passes over requests until the test ends. What a pass does in a cluster is said by work.
func newWorkerPool(t *testing.T, workers, most int, work func(name string, pass int) (reconcile.Result, error)) *workerPool {
	q := workqueue.NewTypedRateLimitingQueue(RateLimiter())
	s := &workerPool{p: NewSlots("test", most, nil), q: q, passes: map[string]int{}, under: map[string]int{}}
	if err := s.p.Source().Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	inner := reconcile.Func(func(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
		pass := s.p.Begin(req)
		defer pass.End()
		cluster, _, _ := strings.Cut(req.Name, " ")
		if !pass.Acquire([]string{cluster}) {
			return reconcile.Result{}, nil
		}
		defer s.count(req.Name)()
		return work(req.Name, s.made(req.Name))
	})
	r := s.p.Detach(inner)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for s.one(t.Context(), r) {
			}
		})
	}
	t.Cleanup(all.Wait)
	t.Cleanup(q.ShutDown)
	return s
}

// one takes a request, as a controller does.
func (s *workerPool) one(ctx context.Context, r reconcile.Reconciler) bool {
	req, over := s.q.Get()
	if over {
		return false
	}
	defer s.q.Done(req)
	switch result, err := r.Reconcile(ctx, req); {
	case err != nil:
		s.mu.Lock()
		s.errors = append(s.errors, err.Error())
		s.mu.Unlock()
		s.q.AddRateLimited(req)
	case result.RequeueAfter > 0:
		s.q.Forget(req)
		s.q.AddAfter(req, result.RequeueAfter)
	default:
		s.q.Forget(req)
	}
	return true
}

// count counts a pass that is under way.
func (s *workerPool) count(name string) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passes[name]++
	s.under[name]++
	s.mostUnder = max(s.mostUnder, s.under[name])
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.under[name]--
	}
}

func (s *workerPool) made(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.passes[name]
}

// TestAnyNumberOfClustersThatHangLeavesAllWorkersToTheOthers has four workers, and clusters that two of them each may be in.
func TestAnyNumberOfClustersThatHangLeavesAllWorkersToTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hung, each, fine = 10, 4, 8
		began, answers := time.Now(), make(chan struct{})
		var mu sync.Mutex
		ends := map[string]time.Duration{}
		s := newWorkerPool(t, 4, 2, func(name string, _ int) (reconcile.Result, error) {
			if strings.HasPrefix(name, "hung") {
				<-answers
			}
			mu.Lock()
			defer mu.Unlock()
			ends[name] = time.Since(began)
			return reconcile.Result{}, nil
		})
		for i := range each {
			for c := range hung {
				s.q.Add(requestOf(fmt.Sprintf("hung-%d %d", c, i)))
			}
		}
		for i := range fine {
			s.q.Add(requestOf(fmt.Sprint("fine ", i)))
		}
		time.Sleep(time.Minute) // of the test's own clock
		synctest.Wait()
		mu.Lock()
		if len(ends) != fine {
			t.Errorf("while clusters hang, only these ended: %v", ends)
		}
		for name, after := range ends { // those who came before them took all workers so often
			if most := hung * 2 / 4 * detachAfter; after > most {
				t.Errorf("%s ended after %s, want %s", name, after, most)
			}
		}
		mu.Unlock()
		for c := range hung {
			site := s.p.sites[fmt.Sprint("hung-", c)]
			if site.inside != 2 || site.waiting.Len() != each-2 {
				t.Errorf("in cluster %d are %d, and %d wait", c, site.inside, site.waiting.Len())
			}
		}
		close(answers)
		synctest.Wait()
		if len(ends) != fine+hung*each || s.mostUnder != 1 || len(s.p.sites)+len(s.p.passes) != 0 {
			t.Errorf("%d ended, %d of one request at once; remembered: %v %v", len(ends), s.mostUnder, s.p.sites, s.p.passes)
		}
	})
}

// TestWhatAPassWithoutAWorkerComesToIsDone has the first pass over a request last longer than its worker stays.
func TestWhatAPassWithoutAWorkerComesToIsDone(t *testing.T) {
	tests := map[string]struct {
		first      func() (reconcile.Result, error)
		meanwhile  bool // something happens
		passes     int
		wantErrors []string
		within     time.Duration
	}{
		"nothing more": {func() (reconcile.Result, error) { return reconcile.Result{}, nil }, false, 1, nil, time.Hour},
		"something happened meanwhile": {
			func() (reconcile.Result, error) { return reconcile.Result{}, nil }, true, 2, nil, time.Millisecond,
		},
		"a pass later": {
			func() (reconcile.Result, error) { return reconcile.Result{RequeueAfter: time.Minute}, nil }, false, 2, nil, time.Minute,
		},
		"an error is told and tried again": {
			func() (reconcile.Result, error) { return reconcile.Result{}, errors.New("broken") }, false, 2, []string{"broken"}, time.Second,
		},
		"an error, and something happened": {
			func() (reconcile.Result, error) { return reconcile.Result{}, errors.New("broken") }, true, 2, []string{"broken"}, time.Second,
		},
		"a panic is an error": {
			func() (reconcile.Result, error) { panic("nobody knows") }, false, 2, []string{"panic: nobody knows"}, time.Second,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newWorkerPool(t, 1, 1, func(_ string, pass int) (reconcile.Result, error) {
					if pass > 1 {
						return reconcile.Result{}, nil
					}
					time.Sleep(10 * detachAfter)
					return tc.first()
				})
				s.q.Add(requestOf("a 1"))
				time.Sleep(5 * detachAfter)
				if tc.meanwhile {
					s.q.Add(requestOf("a 1"))
				}
				time.Sleep(5*detachAfter + tc.within)
				synctest.Wait()
				if got := s.made("a 1"); got != tc.passes || s.mostUnder != 1 {
					t.Errorf("%d passes, %d at once, want %d", got, s.mostUnder, tc.passes)
				}
				if diff := cmp.Diff(tc.wantErrors, s.errors); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// TestAPassThatIsInNoClusterKeepsItsWorker, or nothing would bound how many there are.
func TestAPassThatIsInNoClusterKeepsItsWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewSlots("test", 1, nil)
		r := p.Detach(reconcile.Func(func(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
			pass := p.Begin(req)
			defer pass.End()
			time.Sleep(time.Minute)
			return reconcile.Result{}, nil
		}))
		began := time.Now()
		if _, err := r.Reconcile(t.Context(), requestOf("a")); err != nil || time.Since(began) != time.Minute {
			t.Errorf("the worker left after %s, %v", time.Since(began), err)
		}
	})
}
