// SPDX-License-Identifier: Apache-2.0

// Package fairqueue makes the queues of controllers, so that no team waits for another's backlog: namespaces take turns, and in each
// namespace the Applications. Who goes back comes before who goes on, and who has something under way before what was at rest when
// the process began, of which few are looked at at a time; but of two turns one is always for those behind.
//
// The queues are client-go's, with an order of their own.
package fairqueue

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/rollout/history"
)

// NewQueue makes the queue of a controller, as controller.Options ask for it. Nil is controller-runtime's own, which knows no
// turns.
type NewQueue func(name string, retries limiter) workqueue.TypedRateLimitingInterface[reconcile.Request]

type limiter = workqueue.TypedRateLimiter[reconcile.Request]

// Queues tells who goes back.
type Queues struct {
	// ctx lives as long as the process: queues ask without one.
	ctx       context.Context
	cache     client.Reader
	histories *history.Reader
	// informers are those of what judging reads.
	informers []cache.Informer
}

// New judges by what a cache and histories say. ctx is needed for the time of the call only.
func New(ctx context.Context, c cache.Cache, histories *history.Reader) (*Queues, error) {
	out := &Queues{ctx: context.WithoutCancel(ctx), cache: c, histories: histories}
	for _, kind := range []client.Object{&shipper.Application{}, &shipper.Release{}} {
		informer, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("setting up queues: watching %T: %w", kind, err)
		}
		out.informers = append(out.informers, informer)
	}
	return out, nil
}

// Applications makes queues of requests that are named as Applications, for so many workers.
func (t *Queues) Applications(workers int) NewQueue {
	return newQueue(func(r reconcile.Request) string { return r.Name }, t.judge, workers)
}

// Releases makes queues of requests that are named as Releases, those of targets, for so many workers.
func (t *Queues) Releases(workers int) NewQueue {
	return newQueue(ofRelease, t.judge, workers)
}

// Others makes queues of requests in which only namespaces take turns, for so many workers.
func (t *Queues) Others(workers int) NewQueue {
	return newQueue(func(reconcile.Request) string { return "" }, func(string, string) priority { return idle }, workers)
}

// judge judges by the cache. An Application that cannot be read goes nowhere. Nobody waits for a cache that is still being
// filled: queues ask while they are locked, and could not even be shut down.
func (t *Queues) judge(namespace, application string) priority {
	if slices.ContainsFunc(t.informers, func(i cache.Informer) bool { return !i.HasSynced() }) {
		return idle
	}
	var app shipper.Application
	shared := &client.GetOptions{UnsafeDisableDeepCopy: ptr.To(true)}
	key := client.ObjectKey{Namespace: namespace, Name: application}
	if err := t.cache.Get(t.ctx, key, &app, shared); apierrors.IsNotFound(err) {
		return changed // what was its goes
	} else if err != nil {
		return idle
	}
	rels, err := t.histories.Releases(t.ctx, key)
	switch {
	case err != nil || strategy.Rests(&app, rels):
		return idle
	case strategy.Retreats(&app, rels):
		return retreat
	}
	return changed
}

// Queue makes lines of requests that are named as Releases and wait for something else than a worker.
func (t *Queues) Queue() workqueue.Queue[reconcile.Request] {
	return newFairQueue(ofRelease, t.judge)
}

// workersShare is how many of some workers may work for one namespace: three of four, so that there is one for others.
func workersShare(workers int) int { return max(1, workers*3/4) }

// shareOf is how many of some workers may look at what rests: one of eight. After a start that is everything there is, and it takes no more
// than processors, which whoever has something under way needs too.
func shareOf(workers int) int { return max(1, workers/8) }

func ofRelease(r reconcile.Request) string { return stamp.ApplicationName(r.Name) }

func newFairQueue(application func(reconcile.Request) string, judge func(namespace, application string) priority) *fairQueue {
	return &fairQueue{
		application: application, classify: judge,
		at: map[reconcile.Request]priority{}, background: map[reconcile.Request]bool{}, running: map[string]int{},
		idleRunning: map[reconcile.Request]bool{}, isParked: map[reconcile.Request]bool{}, idlePopped: map[reconcile.Request]bool{},
	}
}

func newQueue(
	application func(reconcile.Request) string, judge func(namespace, application string) priority, workers int,
) NewQueue {
	return func(name string, retries limiter) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		o := newFairQueue(application, judge)
		o.maxPerNamespace, o.maxIdle = workersShare(workers), shareOf(workers)
		inner := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: name, Queue: o})
		delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{Name: name, Queue: inner})
		return &queue{
			order: o,
			TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(retries,
				workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, DelayingQueue: delaying}),
		}
	}
}

// queue is client-go's. It is told by controller-runtime which requests are of what was there when the controller began, or is
// only looked at again: those have a priority below 0.
type queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	order *fairQueue
}

var _ priorityqueue.PriorityQueue[reconcile.Request] = (*queue)(nil)

// Add adds a request because something has happened.
func (q *queue) Add(request reconcile.Request) {
	q.order.takeBackground(request)
	q.TypedRateLimitingInterface.Add(request)
}

// Done says that a request is worked on no more.
func (q *queue) Done(request reconcile.Request) {
	next, called := q.order.promote(request)
	q.end(request)
	if called {
		q.order.markBackground(next)
		q.TypedRateLimitingInterface.Add(next)
	}
}

// end gives the place of a request back.
func (q *queue) end(request reconcile.Request) {
	q.order.finish(request)
	q.TypedRateLimitingInterface.Done(request)
}

// AddWithOpts adds requests as controller-runtime does.
func (q *queue) AddWithOpts(how priorityqueue.AddOpts, requests ...reconcile.Request) {
	for _, request := range requests {
		switch {
		case how.RateLimited:
			q.AddRateLimited(request)
		case how.After > 0:
			q.AddAfter(request, how.After)
		case ptr.Deref(how.Priority, 0) < 0:
			if !q.order.staysParked(request) {
				q.order.markBackground(request)
				q.TypedRateLimitingInterface.Add(request)
			}
		default:
			q.Add(request)
		}
	}
}

// GetWithPriority waits for the request that is next, and may be worked on. Its priority is judged again whenever it is added.
func (q *queue) GetWithPriority() (request reconcile.Request, priority int, shutdown bool) {
	for request, shutdown = q.Get(); !shutdown && !q.order.admit(request); request, shutdown = q.Get() {
		q.end(request)
	}
	return request, 0, shutdown
}
