// SPDX-License-Identifier: Apache-2.0

package turns

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// rank is in which of the lines a request waits.
type rank int

const (
	retreats rank = iota // Applications that go back
	changes              // whatever else has happened
	begun                // what was not at rest when the controller began, or when it is only looked at again
	called               // what was parked and may be worked on now, so that it does not wait until all others are parked
	known                // what was at rest when the controller began, and is now, and what is only looked at again
	ranks
)

// order is that in which a controller works on what waits. Between the lines every second turn is that of the first, as long as
// anything waits behind it, so that it neither waits for long nor starves them.
type order struct {
	// application is that of a request.
	application func(reconcile.Request) string
	// judge tells where an Application waits of which nothing has happened: known, when it is at rest.
	judge func(namespace, application string) rank

	lines [ranks]line
	went  [ranks]bool // before one that waits behind it; its turn is over
	at    map[reconcile.Request]rank

	// most is how many of a namespace may be worked on at a time, so that others need not wait until one of them has ended; 0: all.
	most   int
	inside map[string]int // those of a namespace that are worked on

	mu sync.Mutex
	// calm is how many of those at rest may be worked on at a time, so that what is under way need not share processors with all workers.
	// Those that have to wait for others are parked: they do not wait here, so that a worker is woken when it is their turn, or when
	// something happens to them.
	calm    int
	resting map[reconcile.Request]bool // those at rest that are worked on, or have been called to be
	parked  line
	parks   map[reconcile.Request]bool
	known   map[reconcile.Request]bool // those at rest that were taken out last, until they are let in or parked
	mild    map[reconcile.Request]bool // those that are about to be added without anything having happened
	left    []string                   // namespaces of those that are worked on no more
}

var _ workqueue.Queue[reconcile.Request] = (*order)(nil)

// Push adds what does not wait yet.
func (o *order) Push(request reconcile.Request) {
	r := o.rank(request, o.settle(request))
	o.lines[r].push(o.path(request), request)
	o.at[request] = r
}

// Touch moves what waits already, and to which something has happened, to the front line that it belongs to now. Nothing goes back to a
// later one, and what is only looked at again waits as it did: after a start that is everything there is, once for each of its clusters.
func (o *order) Touch(request reconcile.Request) {
	if o.settle(request) {
		return
	}
	r := o.rank(request, false)
	if r >= o.at[request] {
		return
	}
	o.lines[o.at[request]].remove(o.path(request), request)
	o.lines[r].push(o.path(request), request)
	o.at[request] = r
}

// Len tells how many wait that may be worked on now. Who waits for others of its namespace is not among them: the worker that ends one
// of these asks next.
func (o *order) Len() int {
	o.makeRoom()
	n := 0
	for r := range o.lines {
		n += o.lines[r].length
	}
	return n
}

// Pop takes out who is next.
func (o *order) Pop() reconcile.Request {
	behind := o.Len()
	for r := range o.lines {
		l := &o.lines[r]
		behind -= l.length
		if l.length > 0 || len(l.parties) == 0 { // whose all are held has had its turn, or not, as before
			o.went[r] = l.length > 0 && behind > 0 && !o.went[r]
		}
		if l.length > 0 && (behind == 0 || o.went[r]) {
			request := l.pop()
			delete(o.at, request)
			o.take(request, rank(r))
			o.enter(request.Namespace)
			return request
		}
	}
	return reconcile.Request{} // nothing waits, and nobody asks
}

// enter counts one that is worked on.
func (o *order) enter(namespace string) {
	if o.most == 0 {
		return
	}
	if o.inside[namespace]++; o.inside[namespace] == o.most {
		for r := range o.lines {
			o.lines[r].hold(namespace)
		}
	}
}

// leave says that a request is worked on no more.
func (o *order) leave(request reconcile.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.most > 0 {
		o.left = append(o.left, request.Namespace)
	}
}

// take remembers of one that is taken out whether it was at rest.
func (o *order) take(request reconcile.Request, r rank) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r == known && o.calm > 0 {
		o.known[request] = true
	}
}

// admit tells whether one that was taken out may be worked on now. Otherwise it is parked.
func (o *order) admit(request reconcile.Request) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	rests := o.known[request]
	delete(o.known, request)
	switch {
	case !rests || o.resting[request]:
		return true
	case len(o.resting) < o.calm:
		o.resting[request] = true
		return true
	}
	o.parks[request] = true
	o.parked.push(o.path(request), request)
	return false
}

// call tells who of those parked has to be added, when a request is worked on no more.
func (o *order) call(ended reconcile.Request) (next reconcile.Request, called bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.resting[ended] {
		return next, false
	}
	delete(o.resting, ended)
	if o.parked.length == 0 {
		return next, false
	}
	next = o.parked.pop()
	delete(o.parks, next)
	o.resting[next] = true
	return next, true
}

// isCalled tells whether a request has a place among those at rest that are worked on.
func (o *order) isCalled(request reconcile.Request) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.resting[request]
}

// stays tells whether a request is parked and is still at rest, so that it keeps its turn when it is only looked at again. Whose
// Application has something under way since waits for nobody at rest: a cluster that is lost meanwhile tells it nothing else.
func (o *order) stays(request reconcile.Request) bool {
	o.mu.Lock()
	parked := o.parks[request]
	o.mu.Unlock()
	return parked && o.judge(request.Namespace, o.application(request)) == known
}

// unpark forgets that a request is parked, because it is added.
func (o *order) unpark(request reconcile.Request) {
	if o.parks[request] {
		delete(o.parks, request)
		o.parked.remove(o.path(request), request)
	}
}

// makeRoom takes note of those that have left.
func (o *order) makeRoom() {
	o.mu.Lock()
	left := o.left
	o.left = nil
	o.mu.Unlock()
	for _, namespace := range left {
		if o.inside[namespace] == o.most {
			for r := range o.lines {
				o.lines[r].free(namespace)
			}
		}
		if o.inside[namespace]--; o.inside[namespace] == 0 {
			delete(o.inside, namespace)
		}
	}
}

// rank says where a request is to wait; mild that nothing has happened to it.
func (o *order) rank(request reconcile.Request, mild bool) rank {
	is := o.judge(request.Namespace, o.application(request))
	switch {
	case mild && is != known: // of these many may but wait for a cluster that is lost, or for Pods
		return begun
	case !mild && is == known:
		return changes
	case is == known && o.isCalled(request):
		return called
	}
	return is
}

// path leads to the party that a request is of.
func (o *order) path(request reconcile.Request) []string {
	return []string{request.Namespace, o.application(request)}
}

// expect says that a request is about to be added without anything having happened.
func (o *order) expect(request reconcile.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mild[request] = true
}

// settle tells whether that was said, and forgets it.
func (o *order) settle(request reconcile.Request) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unpark(request)
	said := o.mild[request]
	delete(o.mild, request)
	return said
}
