// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"shipper.dev/shipper/reconciler/queue"
	"shipper.dev/shipper/reconciler/retry"
)

// Key is an Application in a cluster. Passes of a Key are made one after the other.
type Key struct {
	// Cluster is the Cluster's name.
	Cluster string
	// Namespace and App are those of the Application. A target of a chart that names none counts as one of its own.
	Namespace, App string
	// Pods is true for Pods and traffic, false for what is installed.
	Pods bool
}

// queues has a controller for each cluster. Those of clusters that are gone stay, idle, until the process ends. It is safe for concurrent
// use.
type queues struct {
	reconcile reconcile.TypedReconciler[Key]
	options   queue.Options[Key]
	clock     clock.PassiveClock
	due       due

	mu      sync.Mutex
	ctx     context.Context // nil until Start
	all     map[string]priorityqueue.PriorityQueue[Key]
	ended   bool
	running sync.WaitGroup
}

// of is the queue of a cluster.
func (q *queues) of(cluster string) priorityqueue.PriorityQueue[Key] {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := q.all[cluster]
	if out == nil {
		out = queue.Make(q.options, "member-"+cluster, retry.ClusterLimiter[Key]())
		q.all[cluster] = out
		if q.ended {
			out.ShutDown()
		} else {
			q.launch(cluster, out)
		}
	}
	return out
}

// end ends all queues, those without workers too, and each that an event makes afterwards.
func (q *queues) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	for _, c := range q.all {
		c.ShutDown()
	}
}

// launch starts the workers of a cluster, once Start was called. q.mu is held.
func (q *queues) launch(cluster string, c priorityqueue.PriorityQueue[Key]) {
	if q.ctx == nil {
		return
	}
	ctx := q.ctx
	name := "member-" + cluster
	made, err := controller.NewTypedUnmanaged(name, controller.TypedOptions[Key]{
		Reconciler:              q.reconcile,
		MaxConcurrentReconciles: q.options.Workers,
		NewQueue: func(string, workqueue.TypedRateLimiter[Key]) workqueue.TypedRateLimitingInterface[Key] {
			return c
		},
		SkipNameValidation: ptr.To(true),
		LogConstructor: func(key *Key) logr.Logger {
			l := log.FromContext(ctx).WithName("member").WithValues("cluster", cluster)
			if key != nil {
				l = l.WithValues("namespace", key.Namespace, "application", key.App)
			}
			return l
		},
	})
	if err != nil {
		log.FromContext(ctx).Error(err, "A cluster is not worked on", "cluster", cluster)
		return
	}
	q.running.Go(func() {
		if err := made.Start(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "A cluster is not worked on any more", "cluster", cluster)
		}
	})
}

// start starts the workers of all clusters, now and later, and returns when ctx is done and all have ended.
func (q *queues) start(ctx context.Context) {
	q.mu.Lock()
	q.ctx = ctx
	for cluster, c := range q.all {
		q.launch(cluster, c)
	}
	q.mu.Unlock()
	<-ctx.Done()
	q.running.Wait()
}

// add has work done because of an event.
func (q *queues) add(w work) {
	q.due.mark(w, q.clock.Now())
	q.of(w.Cluster).Add(w.Key)
}

// check has work done without an event, as after a start.
func (q *queues) check(w work) {
	q.due.mark(w, q.clock.Now())
	q.of(w.Cluster).AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(handler.LowPriority)}, w.Key)
}

// addAfter has work done later, once for all events until then.
func (q *queues) addAfter(w work, in time.Duration) {
	q.due.mark(w, q.clock.Now().Add(in))
	q.of(w.Cluster).AddAfter(w.Key, in)
}
