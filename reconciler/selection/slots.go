// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// slots bound the passes that read at the same time. A pass that gets none ends, so that its worker is free for other rollouts, and the
// Application is woken when a slot is free: first come, first served.
type slots struct {
	// wake requests passes of Applications. It is called without the lock.
	wake func(apps []types.NamespacedName)

	mu      sync.Mutex
	free    int
	waiting []types.NamespacedName
}

// acquire returns false if no slot is free: then the Application waits. The pass calls release when it holds no decoded objects any more.
func (s *slots) acquire(app types.NamespacedName) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.waiting, app)
	if s.free == 0 {
		if at < 0 {
			s.waiting = append(s.waiting, app)
		}
		return nil, false
	}
	if s.free--; at >= 0 {
		s.waiting = slices.Delete(s.waiting, at, at+1)
	}
	return sync.OnceFunc(func() { s.pass(1) }), true
}

// leave ends the wait of an Application that does not read any more. Others may have been waiting behind it.
func (s *slots) leave(app types.NamespacedName) {
	s.mu.Lock()
	at := slices.Index(s.waiting, app)
	if at >= 0 {
		s.waiting = slices.Delete(s.waiting, at, at+1)
	}
	s.mu.Unlock()
	if at >= 0 {
		s.pass(0)
	}
}

// pass returns slots and wakes as many Applications as slots are free.
func (s *slots) pass(returned int) {
	s.mu.Lock()
	s.free += returned
	next := slices.Clone(s.waiting[:min(s.free, len(s.waiting))])
	s.mu.Unlock()
	if len(next) > 0 {
		s.wake(next)
	}
}
