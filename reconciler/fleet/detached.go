// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// detachAfter is how long a pass keeps its worker while it is at work in a cluster: as long as a request may wait before the cluster is
// suspected.
const detachAfter = suspicion

// Detach has the passes of a reconciler go on without their workers when they are at work in clusters for long, so that any number
// of clusters that do not answer leaves all workers to the others. What goes on keeps its places: there are never more passes in a
// cluster than Places allow. No request has two passes at once: what happens meanwhile has another follow. Without places every pass
// keeps its worker.
func (p *Slots) Detach(r reconcile.Reconciler) reconcile.Reconciler {
	if p == nil {
		return r
	}
	return &detaching{Reconciler: r, places: p, passes: map[reconcile.Request]*detached{}}
}

// detaching is a reconciler.
type detaching struct {
	reconcile.Reconciler
	places *Slots

	mu     sync.Mutex
	passes map[reconcile.Request]*detached
}

// detached is one that may last longer than its worker stays with it.
type detached struct {
	// done is closed when these are what came of it.
	done   chan struct{}
	result reconcile.Result
	err    error
	// alone is true when its worker has left, and again when another has to follow.
	alone, again bool
}

// Reconcile makes a pass, or leaves it going on. What it comes to then, it tells the queue itself, but for an error: that is what the
// next pass begins and ends with, so that it is counted, told and tried again as any other.
func (r *detaching) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	r.mu.Lock()
	pass := r.passes[req]
	switch {
	case pass == nil:
		pass = &detached{done: make(chan struct{})}
		r.passes[req] = pass
		go r.run(ctx, req, pass)
	case pass.err != nil: // it has ended
		delete(r.passes, req)
		r.mu.Unlock()
		return reconcile.Result{}, pass.err
	default:
		pass.again = true
		r.mu.Unlock()
		return reconcile.Result{}, nil
	}
	r.mu.Unlock()
	for !r.ends(ctx, pass) {
		if r.leave(req, pass) {
			return reconcile.Result{}, nil
		}
	}
	return pass.result, pass.err
}

// ends waits for the end of a pass, but not for long unless all is over.
func (r *detaching) ends(ctx context.Context, pass *detached) bool {
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), detachAfter)
	defer cancel()
	select {
	case <-pass.done:
		return true
	case <-patience.Done():
		return false
	}
}

// leave lets a pass go on alone, if it has not ended and is at work in a cluster.
func (r *detaching) leave(req reconcile.Request, pass *detached) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	pass.alone = r.passes[req] == pass && r.places.working(req)
	return pass.alone
}

// run makes a pass to its end.
func (r *detaching) run(ctx context.Context, req reconcile.Request, pass *detached) {
	result, err := r.try(ctx, req)
	r.mu.Lock()
	defer r.mu.Unlock()
	pass.result, pass.err = result, err
	switch {
	case !pass.alone:
		delete(r.passes, req)
	case err != nil:
		r.places.queue.Add(req)
	default:
		delete(r.passes, req)
		if result.RequeueAfter > 0 {
			r.places.queue.AddAfter(req, result.RequeueAfter)
		}
		if pass.again {
			r.places.queue.Add(req)
		}
	}
	close(pass.done)
}

// try makes a pass, whose panic is an error, as it is in a worker.
func (r *detaching) try(ctx context.Context, req reconcile.Request) (result reconcile.Result, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("panic: %v", caught)
			log.FromContext(ctx).Error(err, "Observed a panic", "stacktrace", string(debug.Stack()))
		}
	}()
	return r.Reconciler.Reconcile(ctx, req)
}
