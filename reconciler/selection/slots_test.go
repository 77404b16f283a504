// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

// crowd has Applications that read again as soon as they have read, in the order in which they are woken or wait.
type crowd struct {
	t       *testing.T
	slots   *slots
	clock   *clocktesting.FakePassiveClock
	reading []read
	read    []types.NamespacedName
}

type read struct {
	app types.NamespacedName
	end func()
}

func newCrowd(t *testing.T) *crowd {
	c := &crowd{t: t, clock: clocktesting.NewFakePassiveClock(time.Unix(1, 0))}
	c.slots = newSlots(2, c.clock, func(apps []types.NamespacedName) {
		for _, app := range apps {
			c.tries(app)
		}
	})
	return c
}

func named(namespace string, i int) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: strconv.Itoa(i)}
}

func (c *crowd) tries(app types.NamespacedName) {
	if end, ok := c.slots.acquire(app); ok {
		c.reading = append(c.reading, read{app, end})
	}
}

// ends has the pass that began first end, and its Application change again at once.
func (c *crowd) ends() {
	first := c.reading[0]
	c.reading = c.reading[1:]
	c.read = append(c.read, first.app)
	first.end()
	c.tries(first.app)
}

func TestOneNamespaceDoesNotHoldUpTheContentOfAnother(t *testing.T) {
	c := newCrowd(t)
	for i := range 1000 {
		c.tries(named("many", i))
	}
	if len(c.reading) != 1 {
		t.Errorf("one namespace has %d of 2 slots", len(c.reading))
	}
	c.tries(named("other", 0))
	if len(c.reading) != 2 {
		t.Fatal("another one waits while a slot is free")
	}
	for i := range 1000 { // a second one of this kind
		c.tries(named("crowd", i))
	}
	c.ends()
	c.tries(named("other", 1))
	for range 20 {
		c.ends()
	}
	count := map[string]int{}
	for _, app := range c.read {
		count[app.Namespace]++
	}
	if diff := cmp.Diff(map[string]int{"many": 8, "crowd": 6, "other": 7}, count); diff != "" {
		t.Errorf("passes of 21 (-want +got):\n%s", diff)
	}
}

func TestWithinANamespaceTheFirstThatCameIsNext(t *testing.T) {
	c := newCrowd(t)
	for i := range 4 {
		c.tries(named("a", i))
	}
	for range 8 {
		c.ends()
	}
	want := []types.NamespacedName{
		named("a", 0), named("a", 1), named("a", 2), named("a", 3), named("a", 0), named("a", 1), named("a", 2), named("a", 3),
	}
	if diff := cmp.Diff(want, c.read); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestAnApplicationThatDoesNotComeKeepsNoSlot(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1, 0))
	s := newSlots(1, clock, func([]types.NamespacedName) {})
	end, _ := s.acquire(named("reads", 0))
	s.acquire(named("gone", 0))
	end()
	if _, ok := s.acquire(named("other", 0)); ok {
		t.Error("it goes before one that was woken")
	}
	clock.SetTime(clock.Now().Add(2*busyDelay + time.Second))
	if _, ok := s.acquire(named("other", 0)); !ok {
		t.Error("it waits for one that does not come")
	}
}
