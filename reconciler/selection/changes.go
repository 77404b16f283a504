// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// quietPeriod is how long nothing must have changed before content is taken, so that many objects make one Release.
	quietPeriod = time.Second
	// maxQuietPeriod is how long after its first change content is taken in any case.
	maxQuietPeriod = 5 * time.Second
)

// span is the time of the first and the last change of selected objects that no pass has read.
type span struct{ first, last time.Time }

// wait is how long after now a pass may read the changes.
func (s span) wait(now time.Time) time.Duration {
	due := s.last.Add(quietPeriod)
	if latest := s.first.Add(maxQuietPeriod); latest.Before(due) {
		due = latest
	}
	return max(due.Sub(now), 0)
}

// changes has the Applications whose objects have changed. It is safe for concurrent use.
type changes struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	pending map[types.NamespacedName]span
}

func newChanges(clock clock.PassiveClock) *changes {
	return &changes{clock: clock, pending: map[types.NamespacedName]span{}}
}

// add notes that objects of an Application have changed.
func (c *changes) add(app types.NamespacedName) {
	now := c.clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.pending[app]
	if !ok {
		s.first = now
	}
	s.last = now
	c.pending[app] = s
}

// wait is how long changes of an Application are left alone; 0 if there are none.
func (c *changes) wait(app types.NamespacedName) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.pending[app]
	if !ok {
		return 0
	}
	return s.wait(c.clock.Now())
}

// has reports whether the content of an Application has changed since it was taken.
func (c *changes) has(app types.NamespacedName) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.pending[app]
	return ok
}

// take removes the changes of an Application and returns the time of the first. A pass calls it before it reads.
func (c *changes) take(app types.NamespacedName) (first time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.pending[app]
	delete(c.pending, app)
	return s.first, ok
}
