// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"context"
	"math"

	"shipper.dev/shipper/chart/keyedsemaphore"
)

// lane judges reviews of similar size, a bounded number at a time: judging one takes several times its length of memory, and
// small ones must not wait for large ones. One address has at most three of four slots, one namespace at most `each`.
type lane struct {
	upTo       int
	namespaces *keyedsemaphore.Semaphore
	addresses  *keyedsemaphore.Semaphore
}

// newLanes returns the lanes, the smallest reviews first. The last one takes all.
func newLanes() []*lane {
	return []*lane{newLane(128<<10, 256, 64), newLane(1<<20, 16, 4), newLane(maxBody, 4, 1)}
}

func newLane(upTo, room, each int) *lane {
	return &lane{upTo: upTo, namespaces: keyedsemaphore.New(math.MaxInt, each), addresses: keyedsemaphore.New(room, room*3/4)}
}

// laneFor is the lane for reviews of a size.
func laneFor(lanes []*lane, size int) *lane {
	for _, l := range lanes {
		if size <= l.upTo {
			return l
		}
	}
	return lanes[len(lanes)-1]
}

// enter waits for a slot, or until ctx is done; leave frees it. Callers may claim any namespace, so slots are counted per
// address and namespace: no caller can take the slots of another's namespace.
func (l *lane) enter(ctx context.Context, address, namespace string) (leave func(), err error) {
	party := address + " " + namespace
	if err := l.namespaces.Enter(ctx, party); err != nil {
		return nil, err
	}
	if err := l.addresses.Enter(ctx, address); err != nil {
		l.namespaces.Leave(party)
		return nil, err
	}
	return func() {
		l.addresses.Leave(address)
		l.namespaces.Leave(party)
	}, nil
}
