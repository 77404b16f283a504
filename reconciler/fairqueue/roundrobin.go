// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// roundRobin is requests that wait. Its parties take turns: namespaces, and in each the Applications. What waits for one Application
// goes in the order it came.
type roundRobin struct {
	length  int                    // of what may go
	held    map[string]bool        // names of the parties of which nothing may go now
	next    []string               // those of the parties that have something waiting, whose turn it is first, held or not
	parties map[string]*roundRobin // by name
	waiting []reconcile.Request    // of a line without parties
}

// push adds a request of the party that path leads to. A party that had nothing waiting comes last.
func (l *roundRobin) push(path []string, request reconcile.Request) {
	if len(path) == 0 {
		l.length++
		l.waiting = append(l.waiting, request)
		return
	}
	name := path[0]
	party := l.parties[name]
	if party == nil {
		if l.parties == nil {
			l.parties = map[string]*roundRobin{}
		}
		party = &roundRobin{}
		l.parties[name] = party
		l.next = append(l.next, name)
	}
	if party.push(path[1:], request); !l.held[name] {
		l.length++
	}
}

// pop takes what is next out. The line must not be empty.
func (l *roundRobin) pop() reconcile.Request {
	l.length--
	if len(l.next) == 0 {
		request := l.waiting[0]
		l.waiting = l.waiting[1:]
		return request
	}
	i := slices.IndexFunc(l.next, func(name string) bool { return !l.held[name] }) // few are held at a time
	name := l.next[i]
	copy(l.next[1:i+1], l.next[:i])
	l.next = l.next[1:]
	party := l.parties[name]
	request := party.pop()
	if party.length > 0 {
		l.next = append(l.next, name)
	} else {
		delete(l.parties, name)
	}
	return request
}

// remove takes a request of the party that path leads to out of turn. It must be there.
func (l *roundRobin) remove(path []string, request reconcile.Request) {
	if len(path) == 0 || !l.held[path[0]] {
		l.length--
	}
	if len(path) == 0 {
		l.waiting = slices.DeleteFunc(l.waiting, func(r reconcile.Request) bool { return r == request })
		return
	}
	party := l.parties[path[0]]
	party.remove(path[1:], request)
	if party.length == 0 {
		delete(l.parties, path[0])
		l.next = slices.DeleteFunc(l.next, func(name string) bool { return name == path[0] })
	}
}

// hold lets nothing of a party go until free. It keeps its turn.
func (l *roundRobin) hold(name string) {
	if l.held == nil {
		l.held = map[string]bool{}
	}
	l.held[name] = true
	if party := l.parties[name]; party != nil {
		l.length -= party.length
	}
}

// free lets a party that was held go again.
func (l *roundRobin) free(name string) {
	delete(l.held, name)
	if party := l.parties[name]; party != nil {
		l.length += party.length
	}
}
