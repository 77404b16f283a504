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

	mu   sync.Mutex
	mild map[reconcile.Request]bool // those that are about to be added without anything having happened
	left []string                   // namespaces of those that are worked on no more
}

var _ workqueue.Queue[reconcile.Request] = (*order)(nil)

// Push adds what does not wait yet.
func (o *order) Push(request reconcile.Request) {
	r := o.rank(request)
	o.lines[r].push(o.path(request), request)
	o.at[request] = r
}

// Touch moves what waits already to the front line that it belongs to now. Nothing goes back to a later one.
func (o *order) Touch(request reconcile.Request) {
	r := o.rank(request)
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

// rank says where a request is to wait.
func (o *order) rank(request reconcile.Request) rank {
	mild, is := o.settle(request), o.judge(request.Namespace, o.application(request))
	switch {
	case mild && is != known: // of these many may but wait for a cluster that is lost, or for Pods
		return begun
	case !mild && is == known:
		return changes
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
	said := o.mild[request]
	delete(o.mild, request)
	return said
}
