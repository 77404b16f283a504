// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"
	"sync"
)

// Priority is the level in which a request waits.
type Priority int

// The priorities, the highest first.
const (
	// Urgent is for Applications that are aborted or go back.
	Urgent Priority = iota
	// Normal is for events.
	Normal
	// Low is for requests without an event: after a start, or after a cluster was connected or lost.
	Low
	priorities
)

// order decides the next request: the highest priority first, within a priority one namespace after the other. As long as requests of
// a lower priority wait, every second request is one of those. No namespace gets more than perNamespace workers. It is safe for
// concurrent use.
type order[R comparable] struct {
	namespace    func(R) string
	perNamespace int

	mu      sync.Mutex
	levels  [priorities]level[R]
	served  [priorities]bool // the last request had this priority, though lower ones waited
	at      map[R]Priority   // of those that wait
	marked  map[R]Priority   // of those that are about to be added
	running map[string]int   // requests that workers have, by namespace
}

// level is the requests of one priority.
type level[R comparable] struct {
	order   []string // namespaces with waiting requests, the next first
	waiting map[string][]R
	length  int // of all in waiting
}

func newOrder[R comparable](namespace func(R) string, perNamespace int) *order[R] {
	out := &order[R]{
		namespace: namespace, perNamespace: perNamespace,
		at: map[R]Priority{}, marked: map[R]Priority{}, running: map[string]int{},
	}
	for p := range out.levels {
		out.levels[p].waiting = map[string][]R{}
	}
	return out
}

// mark sets the priority with which a request is added next, unless it has a higher one.
func (o *order[R]) mark(request R, p Priority) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if known, ok := o.marked[request]; !ok || p < known {
		o.marked[request] = p
	}
}

// priority takes the mark of a request. Without one it is Normal: a retry.
func (o *order[R]) priority(request R) Priority {
	p, ok := o.marked[request]
	if !ok {
		return Normal
	}
	delete(o.marked, request)
	return p
}

// Push adds a request that does not wait yet.
func (o *order[R]) Push(request R) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.priority(request)
	o.at[request] = p
	o.levels[p].push(o.namespace(request), request)
}

// Touch moves a request that waits to a higher priority.
func (o *order[R]) Touch(request R) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.priority(request)
	if p >= o.at[request] {
		return
	}
	o.levels[o.at[request]].remove(o.namespace(request), request)
	o.at[request] = p
	o.levels[p].push(o.namespace(request), request)
}

// Len returns the number of requests that a worker may take now.
func (o *order[R]) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for p := range o.levels {
		n += o.ready(&o.levels[p])
	}
	return n
}

// ready returns the number of requests of a level that a worker may take now.
func (o *order[R]) ready(l *level[R]) int {
	n := l.length
	for namespace := range o.running { // not more than workers
		if o.full(namespace) {
			n -= len(l.waiting[namespace])
		}
	}
	return n
}

func (o *order[R]) full(namespace string) bool { return o.running[namespace] >= o.perNamespace }

// Pop takes the next request. Len must not be 0.
func (o *order[R]) Pop() (request R) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var ready [priorities]int
	behind := 0
	for p := range o.levels {
		ready[p] = o.ready(&o.levels[p])
		behind += ready[p]
	}
	for p := range o.levels {
		behind -= ready[p]
		if ready[p] == 0 {
			continue
		}
		if o.served[p] = behind > 0 && !o.served[p]; behind == 0 || o.served[p] {
			request = o.levels[p].pop(o.full)
			delete(o.at, request)
			o.running[o.namespace(request)]++
			break
		}
	}
	return request
}

// done takes note that a worker has finished a request.
func (o *order[R]) done(request R) {
	o.mu.Lock()
	defer o.mu.Unlock()
	namespace := o.namespace(request)
	if o.running[namespace]--; o.running[namespace] <= 0 {
		delete(o.running, namespace)
	}
}

func (l *level[R]) push(namespace string, request R) {
	if len(l.waiting[namespace]) == 0 {
		l.order = append(l.order, namespace)
	}
	l.waiting[namespace] = append(l.waiting[namespace], request)
	l.length++
}

// pop takes a request of the first namespace that is not full, which then waits behind the others.
func (l *level[R]) pop(full func(namespace string) bool) R {
	i := slices.IndexFunc(l.order, func(namespace string) bool { return !full(namespace) })
	namespace := l.order[i]
	copy(l.order[1:i+1], l.order[:i])
	l.order = l.order[1:]
	l.length--
	request := l.waiting[namespace][0]
	if l.waiting[namespace] = l.waiting[namespace][1:]; len(l.waiting[namespace]) > 0 {
		l.order = append(l.order, namespace)
	} else {
		delete(l.waiting, namespace)
	}
	return request
}

func (l *level[R]) remove(namespace string, request R) {
	l.length--
	l.waiting[namespace] = slices.DeleteFunc(l.waiting[namespace], func(r R) bool { return r == request })
	if len(l.waiting[namespace]) == 0 {
		delete(l.waiting, namespace)
		l.order = slices.DeleteFunc(l.order, func(n string) bool { return n == namespace })
	}
}
