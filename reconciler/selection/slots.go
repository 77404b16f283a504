// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// slots bound the passes that read at the same time. A pass that gets none ends, so that its worker is free for other rollouts, and the
// Application is woken when it is its turn: namespaces take turns, and the Applications of one are served in the order in which they came.
// One namespace never has all slots, and no pass goes before one that was woken.
type slots struct {
	// wake requests passes of Applications. It is called without the lock.
	wake  func(apps []types.NamespacedName)
	clock clock.PassiveClock

	mu   sync.Mutex
	free int
	// each is how many slots a namespace gets, inside how many it has.
	each   int
	inside map[string]int
	// turns are the namespaces of waiting Applications, the next one first.
	turns   []string
	waiting map[string][]*waiter
}

// waiter is an Application that waits. woken is when it was woken, zero if it was not or has come since.
type waiter struct {
	app   types.NamespacedName
	woken time.Time
}

func newSlots(n int, clock clock.PassiveClock, wake func(apps []types.NamespacedName)) *slots {
	return &slots{
		wake: wake, clock: clock, free: n, each: max(1, n-1), inside: map[string]int{}, waiting: map[string][]*waiter{},
	}
}

// acquire returns false if it is not the turn of an Application: then it waits. The pass calls release when it holds no decoded objects any
// more.
func (s *slots) acquire(app types.NamespacedName) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	if !s.isNext(app) {
		s.enqueue(app)
		return nil, false
	}
	if s.remove(app); len(s.waiting[app.Namespace]) > 0 { // the other namespaces have their turns first
		s.turns = append(slices.DeleteFunc(s.turns, func(n string) bool { return n == app.Namespace }), app.Namespace)
	}
	s.free--
	s.inside[app.Namespace]++
	return sync.OnceFunc(func() { s.giveBack(app.Namespace) }), true
}

// isNext reports whether a slot is free for an Application once those before it have theirs. s.mu is held.
func (s *slots) isNext(app types.NamespacedName) bool {
	mine := slices.IndexFunc(s.waiting[app.Namespace], func(w *waiter) bool { return w.app == app })
	if mine < 0 {
		mine = len(s.waiting[app.Namespace])
	}
	if s.inside[app.Namespace]+mine >= s.each {
		return false
	}
	before := mine
	for _, namespace := range s.turns {
		if namespace == app.Namespace {
			break
		}
		before += s.room(namespace)
	}
	return before < s.free
}

// room is how many waiting Applications of a namespace may read now. s.mu is held.
func (s *slots) room(namespace string) int {
	return max(0, min(len(s.waiting[namespace]), s.each-s.inside[namespace]))
}

// enqueue makes an Application wait. s.mu is held.
func (s *slots) enqueue(app types.NamespacedName) {
	of := s.waiting[app.Namespace]
	if i := slices.IndexFunc(of, func(w *waiter) bool { return w.app == app }); i >= 0 {
		of[i].woken = time.Time{} // it came
		return
	}
	if len(of) == 0 {
		s.turns = append(s.turns, app.Namespace)
	}
	s.waiting[app.Namespace] = append(of, &waiter{app: app})
}

// remove ends the wait of an Application, and reports whether it waited. s.mu is held.
func (s *slots) remove(app types.NamespacedName) bool {
	return s.drop(app.Namespace, func(w *waiter) bool { return w.app == app })
}

// expire ends the wait of Applications that were woken and did not come: nothing may keep those behind them waiting. s.mu is held.
func (s *slots) expire() {
	for _, namespace := range slices.Clone(s.turns) {
		s.drop(namespace, func(w *waiter) bool { return !w.woken.IsZero() && s.clock.Since(w.woken) > 2*busyDelay })
	}
}

// drop ends the wait of some Applications of a namespace, and reports whether there were any. s.mu is held.
func (s *slots) drop(namespace string, which func(*waiter) bool) bool {
	before := len(s.waiting[namespace])
	s.waiting[namespace] = slices.DeleteFunc(s.waiting[namespace], which)
	if len(s.waiting[namespace]) == 0 {
		delete(s.waiting, namespace)
		s.turns = slices.DeleteFunc(s.turns, func(n string) bool { return n == namespace })
	}
	return len(s.waiting[namespace]) < before
}

// leave ends the wait of an Application that does not read any more. Others may have been waiting behind it.
func (s *slots) leave(app types.NamespacedName) {
	s.mu.Lock()
	left := s.remove(app)
	next := s.next()
	s.mu.Unlock()
	if left && len(next) > 0 {
		s.wake(next)
	}
}

// giveBack returns a slot of a namespace, and wakes as many Applications as slots are free.
func (s *slots) giveBack(namespace string) {
	s.mu.Lock()
	s.free++
	if s.inside[namespace]--; s.inside[namespace] == 0 {
		delete(s.inside, namespace)
	}
	next := s.next()
	s.mu.Unlock()
	if len(next) > 0 {
		s.wake(next)
	}
}

// next are the Applications whose turn it is. s.mu is held.
func (s *slots) next() []types.NamespacedName {
	var out []types.NamespacedName
	for _, namespace := range s.turns {
		for _, w := range s.waiting[namespace][:s.room(namespace)] {
			if len(out) == s.free {
				return out
			}
			if w.woken.IsZero() {
				w.woken = s.clock.Now()
			}
			out = append(out, w.app)
		}
	}
	return out
}
