// SPDX-License-Identifier: Apache-2.0

package member

import (
	"testing"
	"testing/synctest"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"shipper.dev/shipper/reconciler/queue"
)

// TestQueuesWithoutWorkersEnd has a bubble, which fails when a goroutine is left in it: a process may end between its first event and the
// start of the workers.
func TestQueuesWithoutWorkersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queues{clock: clock.RealClock{}, all: map[string]priorityqueue.PriorityQueue[Key]{}, options: queue.Options[Key]{
			Namespace: func(k Key) string { return k.Namespace }, Workers: 1,
		}}
		q.add(work{Key: Key{Cluster: "a"}})
		q.end()
		q.add(work{Key: Key{Cluster: "b"}})
		if a, b := q.of("a").ShuttingDown(), q.of("b").ShuttingDown(); !a || !b {
			t.Errorf("the queues end: %t, and %t", a, b)
		}
	})
}
