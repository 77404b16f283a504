// SPDX-License-Identifier: Apache-2.0

// Package queue makes the queues of controllers: client-go's, round robin among namespaces, and Applications that are aborted or go
// back come first.
package queue

import (
	"cmp"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// New makes the queue of a controller, as controller.TypedOptions ask for it. Nil is controller-runtime's own.
type New[R comparable] func(name string, retries workqueue.TypedRateLimiter[R]) workqueue.TypedRateLimitingInterface[R]

// Options of a queue.
type Options[R comparable] struct {
	// Namespace returns the namespace that a request is charged to.
	Namespace func(R) string
	// Priority of a request; Low if its Application is at rest. It is called before the queue is locked. Nil: always Low.
	Priority func(R) Priority
	// Workers of the controller. A namespace gets at most three of four, so that one is left for others.
	Workers int
	// PerNamespace is how many workers a namespace gets at most, if it is not 0.
	PerNamespace int
}

// Of makes queues.
func Of[R comparable](o Options[R]) New[R] {
	return func(name string, retries workqueue.TypedRateLimiter[R]) workqueue.TypedRateLimitingInterface[R] {
		return Make(o, name, retries)
	}
}

// Make makes one queue.
func Make[R comparable](o Options[R], name string, retries workqueue.TypedRateLimiter[R]) priorityqueue.PriorityQueue[R] {
	if o.Priority == nil {
		o.Priority = func(R) Priority { return Low }
	}
	order := newOrder(o.Namespace, cmp.Or(o.PerNamespace, max(1, o.Workers*3/4)))
	inner := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[R]{Name: name, Queue: order})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[R]{Name: name, Queue: inner})
	return &queue[R]{
		order: order, priority: o.Priority,
		TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(retries,
			workqueue.TypedRateLimitingQueueConfig[R]{Name: name, DelayingQueue: delaying}),
	}
}

// Objects makes queues of requests that name objects.
func Objects(workers int, priority func(reconcile.Request) Priority) New[reconcile.Request] {
	return Of(Options[reconcile.Request]{
		Namespace: func(r reconcile.Request) string { return r.Namespace }, Priority: priority, Workers: workers,
	})
}

// queue is client-go's with another order.
type queue[R comparable] struct {
	workqueue.TypedRateLimitingInterface[R]
	order    *order[R]
	priority func(R) Priority
}

// Add adds a request because of an event.
func (q *queue[R]) Add(request R) {
	q.add(request, min(q.priority(request), Normal))
}

// AddAfter adds a request later.
func (q *queue[R]) AddAfter(request R, in time.Duration) {
	q.markUrgent(request)
	q.TypedRateLimitingInterface.AddAfter(request, in)
}

// AddRateLimited adds a request that has failed, later each time.
func (q *queue[R]) AddRateLimited(request R) {
	q.markUrgent(request)
	q.TypedRateLimitingInterface.AddRateLimited(request)
}

// markUrgent keeps an abort ahead of its namespace's backlog when it is tried again.
func (q *queue[R]) markUrgent(request R) {
	if q.priority(request) == Urgent {
		q.order.mark(request, Urgent)
	}
}

func (q *queue[R]) add(request R, p Priority) {
	q.order.mark(request, p)
	q.TypedRateLimitingInterface.Add(request)
}

// Done ends the work on a request.
func (q *queue[R]) Done(request R) {
	q.order.done(request)
	q.TypedRateLimitingInterface.Done(request)
}

// AddWithOpts adds requests as controller-runtime does: those with a priority below 0 have no event.
func (q *queue[R]) AddWithOpts(how priorityqueue.AddOpts, requests ...R) {
	for _, request := range requests {
		switch {
		case how.RateLimited:
			q.AddRateLimited(request)
		case how.After > 0:
			q.AddAfter(request, how.After)
		case ptr.Deref(how.Priority, 0) < 0: // many may only wait for a lost cluster: none of them is urgent
			q.add(request, max(q.priority(request), Normal))
		default:
			q.Add(request)
		}
	}
}

// GetWithPriority waits for the next request. Its priority is decided again whenever it is added.
func (q *queue[R]) GetWithPriority() (request R, priority int, shutdown bool) {
	request, shutdown = q.Get()
	return request, 0, shutdown
}
