// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// priority is in which of the lines a request waits.
type priority int

const (
	retreat  priority = iota // Applications that go back
	changed                  // whatever else has happened
	active                   // what was not at rest when the controller began, or when it is only looked at again
	promoted                 // what was parked and may be worked on now, so that it does not wait until all others are parked
	idle                     // what was at rest when the controller began, and is now, and what is only looked at again
	priorities
)

// fairQueue is that in which a controller works on what waits. Between the lines every second turn is that of the first, as long as
// anything waits behind it, so that it neither waits for long nor starves them.
type fairQueue struct {
	// application is that of a request.
	application func(reconcile.Request) string
	// classify tells where an Application waits of which nothing has happened: known, when it is at rest.
	classify func(namespace, application string) priority

	queues [priorities]roundRobin
	served [priorities]bool // before one that waits behind it; its turn is over
	at     map[reconcile.Request]priority

	// maxPerNamespace is how many of a namespace may be worked on at a time, so that others need not wait until one of them has ended; 0: all.
	maxPerNamespace int
	running         map[string]int // those of a namespace that are worked on

	mu sync.Mutex
	// maxIdle is how many of those at rest may be worked on at a time, so that what is under way need not share processors with all workers.
	// Those that have to wait for others are parked: they do not wait here, so that a worker is woken when it is their turn, or when
	// something happens to them.
	maxIdle     int
	idleRunning map[reconcile.Request]bool // those at rest that are worked on, or have been called to be
	parked      roundRobin
	isParked    map[reconcile.Request]bool
	idlePopped  map[reconcile.Request]bool // those at rest that were taken out last, until they are let in or parked
	background  map[reconcile.Request]bool // those that are about to be added without anything having happened
	finished    []string                   // namespaces of those that are worked on no more
}

var _ workqueue.Queue[reconcile.Request] = (*fairQueue)(nil)

// Push adds what does not wait yet.
func (o *fairQueue) Push(request reconcile.Request) {
	r := o.priorityOf(request, o.takeBackground(request))
	o.queues[r].push(o.path(request), request)
	o.at[request] = r
}

// Touch moves what waits already, and to which something has happened, to the front line that it belongs to now. Nothing goes back to a
// later one, and what is only looked at again waits as it did: after a start that is everything there is, once for each of its clusters.
func (o *fairQueue) Touch(request reconcile.Request) {
	if o.takeBackground(request) {
		return
	}
	r := o.priorityOf(request, false)
	if r >= o.at[request] {
		return
	}
	o.queues[o.at[request]].remove(o.path(request), request)
	o.queues[r].push(o.path(request), request)
	o.at[request] = r
}

// Len reports how many wait that may be worked on now. Who waits for others of its namespace is not among them: the worker that ends one
// of these asks next.
func (o *fairQueue) Len() int {
	o.release()
	n := 0
	for r := range o.queues {
		n += o.queues[r].length
	}
	return n
}

// Pop takes out who is next.
func (o *fairQueue) Pop() reconcile.Request {
	behind := o.Len()
	for r := range o.queues {
		l := &o.queues[r]
		behind -= l.length
		if l.length > 0 || len(l.parties) == 0 { // whose all are held has had its turn, or not, as before
			o.served[r] = l.length > 0 && behind > 0 && !o.served[r]
		}
		if l.length > 0 && (behind == 0 || o.served[r]) {
			request := l.pop()
			delete(o.at, request)
			o.popped(request, priority(r))
			o.started(request.Namespace)
			return request
		}
	}
	return reconcile.Request{} // nothing waits, and nobody asks
}

// started counts one that is worked on.
func (o *fairQueue) started(namespace string) {
	if o.maxPerNamespace == 0 {
		return
	}
	if o.running[namespace]++; o.running[namespace] == o.maxPerNamespace {
		for r := range o.queues {
			o.queues[r].hold(namespace)
		}
	}
}

// finish says that a request is worked on no more.
func (o *fairQueue) finish(request reconcile.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.maxPerNamespace > 0 {
		o.finished = append(o.finished, request.Namespace)
	}
}

// popped remembers of one that is taken out whether it was at rest.
func (o *fairQueue) popped(request reconcile.Request, r priority) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r == idle && o.maxIdle > 0 {
		o.idlePopped[request] = true
	}
}

// admit reports whether one that was taken out may be worked on now. Otherwise it is parked.
func (o *fairQueue) admit(request reconcile.Request) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	rests := o.idlePopped[request]
	delete(o.idlePopped, request)
	switch {
	case !rests || o.idleRunning[request]:
		return true
	case len(o.idleRunning) < o.maxIdle:
		o.idleRunning[request] = true
		return true
	}
	o.isParked[request] = true
	o.parked.push(o.path(request), request)
	return false
}

// promote tells who of those parked has to be added, when a request is worked on no more.
func (o *fairQueue) promote(ended reconcile.Request) (next reconcile.Request, called bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.idleRunning[ended] {
		return next, false
	}
	delete(o.idleRunning, ended)
	if o.parked.length == 0 {
		return next, false
	}
	next = o.parked.pop()
	delete(o.isParked, next)
	o.idleRunning[next] = true
	return next, true
}

// isPromoted reports whether a request has a place among those at rest that are worked on.
func (o *fairQueue) isPromoted(request reconcile.Request) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.idleRunning[request]
}

// staysParked reports whether a request is parked and is still at rest, so that it keeps its turn when it is only looked at again. Whose
// Application has something under way since waits for nobody at rest: a cluster that is lost meanwhile tells it nothing else.
func (o *fairQueue) staysParked(request reconcile.Request) bool {
	o.mu.Lock()
	parked := o.isParked[request]
	o.mu.Unlock()
	return parked && o.classify(request.Namespace, o.application(request)) == idle
}

// unpark forgets that a request is parked, because it is added.
func (o *fairQueue) unpark(request reconcile.Request) {
	if o.isParked[request] {
		delete(o.isParked, request)
		o.parked.remove(o.path(request), request)
	}
}

// release takes note of those that have left.
func (o *fairQueue) release() {
	o.mu.Lock()
	left := o.finished
	o.finished = nil
	o.mu.Unlock()
	for _, namespace := range left {
		if o.running[namespace] == o.maxPerNamespace {
			for r := range o.queues {
				o.queues[r].free(namespace)
			}
		}
		if o.running[namespace]--; o.running[namespace] == 0 {
			delete(o.running, namespace)
		}
	}
}

// priorityOf says where a request is to wait; mild that nothing has happened to it.
func (o *fairQueue) priorityOf(request reconcile.Request, mild bool) priority {
	is := o.classify(request.Namespace, o.application(request))
	switch {
	case mild && is != idle: // of these many may but wait for a cluster that is lost, or for Pods
		return active
	case !mild && is == idle:
		return changed
	case is == idle && o.isPromoted(request):
		return promoted
	}
	return is
}

// path leads to the party that a request is of.
func (o *fairQueue) path(request reconcile.Request) []string {
	return []string{request.Namespace, o.application(request)}
}

// markBackground says that a request is about to be added without anything having happened.
func (o *fairQueue) markBackground(request reconcile.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.background[request] = true
}

// takeBackground reports whether that was said, and forgets it.
func (o *fairQueue) takeBackground(request reconcile.Request) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unpark(request)
	said := o.background[request]
	delete(o.background, request)
	return said
}
