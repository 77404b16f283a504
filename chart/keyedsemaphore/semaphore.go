// SPDX-License-Identifier: Apache-2.0

// Package keyedsemaphore bounds concurrency, in total and per party, and serves the waiting parties round-robin: the first waiter of
// a new party waits for at most one turn of each other party. A party is a namespace in most uses.
package keyedsemaphore

import (
	"context"
	"slices"
	"sync"
)

// Semaphore is a keyed semaphore. It is safe for concurrent use.
type Semaphore struct {
	room, each int

	mu     sync.Mutex
	inside map[string]int
	total  int
	// next are the parties with waiters, in the order of their turns. waiting has a channel for each waiter, closed to admit it.
	next    []string
	waiting map[string][]chan struct{}
}

// New admits at most room, and at most each for one key; both are at least one.
func New(room, each int) *Semaphore {
	return &Semaphore{
		room: max(1, room), each: max(1, each), inside: map[string]int{}, waiting: map[string][]chan struct{}{},
	}
}

// Enter waits until a party is admitted, or until ctx is done: then it returns ctx's error, and the party is not admitted. Call
// Leave after an Enter without an error.
func (t *Semaphore) Enter(ctx context.Context, party string) error {
	ticket := t.enqueue(party)
	select {
	case <-ticket:
		return nil
	case <-ctx.Done():
	}
	if !t.abandon(party, ticket) {
		t.Leave(party)
	}
	return context.Cause(ctx)
}

// Wait is Enter without a context, for short critical sections. Call Leave after it.
func (t *Semaphore) Wait(party string) { <-t.enqueue(party) }

// Leave frees one slot of a party.
func (t *Semaphore) Leave(party string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total--
	if t.inside[party]--; t.inside[party] == 0 {
		delete(t.inside, party)
	}
	t.admit()
}

// enqueue adds a waiter. The channel is closed when it is admitted.
func (t *Semaphore) enqueue(party string) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	ticket := make(chan struct{})
	if len(t.waiting[party]) == 0 {
		t.next = append(t.next, party)
	}
	t.waiting[party] = append(t.waiting[party], ticket)
	t.admit()
	return ticket
}

// abandon removes a waiter; false when it is already admitted.
func (t *Semaphore) abandon(party string, ticket chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.waiting[party], ticket)
	if i < 0 {
		return false
	}
	t.remove(party, i)
	return true
}

// remove removes the i-th waiter of a party. t.mu is held.
func (t *Semaphore) remove(party string, i int) {
	if t.waiting[party] = slices.Delete(t.waiting[party], i, i+1); len(t.waiting[party]) > 0 {
		return
	}
	delete(t.waiting, party)
	t.next = slices.DeleteFunc(t.next, func(name string) bool { return name == party })
}

// admit admits the next waiters while there is room. t.mu is held.
func (t *Semaphore) admit() {
	for t.total < t.room {
		i := slices.IndexFunc(t.next, func(party string) bool { return t.inside[party] < t.each })
		if i < 0 {
			return
		}
		party := t.next[i]
		close(t.waiting[party][0])
		t.next = append(slices.Delete(t.next, i, i+1), party)
		t.remove(party, 0)
		t.inside[party]++
		t.total++
	}
}
