// SPDX-License-Identifier: Apache-2.0

// Package keyedsemaphore lets some through at a time, of each party some of these, and has parties take turns: however many of one wait, who
// comes of another is next but one. A party is a team, by its namespace.
package keyedsemaphore

import (
	"context"
	"slices"
	"sync"
)

// Semaphore is where parties wait. It is safe for concurrent use.
type Semaphore struct {
	room, each int

	mu     sync.Mutex
	inside map[string]int
	total  int
	// next are the parties that wait, whose turn it is first, and waiting who waits of each: a channel is closed when he is in.
	next    []string
	waiting map[string][]chan struct{}
}

// New has room for so many, and for so many of each party; at least one.
func New(room, each int) *Semaphore {
	return &Semaphore{
		room: max(1, room), each: max(1, each), inside: map[string]int{}, waiting: map[string][]chan struct{}{},
	}
}

// Enter waits until there is room for one more of a party, or ctx is done: that is its error, and nobody is in. Who is in has to
// leave.
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

// Wait waits until there is room for one more of a party, where nobody stays for long. Who is in has to leave.
func (t *Semaphore) Wait(party string) { <-t.enqueue(party) }

// Leave makes room for one more of a party.
func (t *Semaphore) Leave(party string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total--
	if t.inside[party]--; t.inside[party] == 0 {
		delete(t.inside, party)
	}
	t.admit()
}

// enqueue joins those who wait. The channel is closed when he is in.
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

// abandon takes out who waits; false when he is in already.
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

// remove takes out the i-th of a party that waits. t.mu is held.
func (t *Semaphore) remove(party string, i int) {
	if t.waiting[party] = slices.Delete(t.waiting[party], i, i+1); len(t.waiting[party]) > 0 {
		return
	}
	delete(t.waiting, party)
	t.next = slices.DeleteFunc(t.next, func(name string) bool { return name == party })
}

// admit lets in who is next while there is room. t.mu is held.
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
