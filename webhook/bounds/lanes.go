// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"context"
	"math"

	"shipper.dev/shipper/chart/keyedsemaphore"
)

// lane has reviews judged that are as large as one another, so many at a time: judging one takes several times its length of memory, and
// large ones must not wait before small ones. Three of four are of one address at most, and `each` of one namespace.
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

// enter waits for a place, or until ctx is done. Who has one leaves it when the review is judged. What a caller says of its namespace
// counts for that caller alone: nobody takes the places of another's namespace.
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
