// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const (
	// maxQueued bounds the events of one Notification that wait, and maxOfAll those of one for every namespace.
	maxQueued, maxOfAll = 256, 4096
	// giveUpAfter is how long an event is tried.
	giveUpAfter = time.Hour
	// firstRetry and lastRetry bound the time between attempts.
	firstRetry, lastRetry = time.Second, 5 * time.Minute
)

// outbox has the events of one Notification that are not delivered, and what is to be reported of it. Only a pass of the Notification
// changes what is not behind mu.
type outbox struct {
	uid types.UID

	mu     sync.Mutex
	queued []queued
	limit  int
	// known has the IDs of the last events, so that one that is derived twice is sent once.
	known *lru.Cache

	// checked is the generation whose receiver was last checked.
	checked int64
	// failedChecks of the receiver failed in a row; the next is due at checkAt, which is zero if the last one succeeded.
	failedChecks int
	checkAt      time.Time
	// attempts of the first event failed; the next is due at retryAt.
	attempts int
	retryAt  time.Time
	// quietAt is when deliveredUpTo may become the present; zero when it is or nothing was delivered.
	quietAt time.Time

	failures     int32
	lastDelivery time.Time
	// deliveredUpTo is the time of the youngest event that was delivered or given up; see mark.
	deliveredUpTo time.Time
	// delivering is the new condition; nil when it stays.
	delivering *shipper.Condition
}

type queued struct {
	Event
	since time.Time
}

func newOutbox(n *shipper.Notification, limit int) *outbox {
	b := &outbox{uid: n.UID, limit: limit, known: lru.New(4 * limit), failures: n.Status.ConsecutiveFailures}
	if t := n.Status.LastDeliveryTime; t != nil {
		b.lastDelivery = t.Time
	}
	if t := n.Status.DeliveredUpToTime; t != nil {
		b.deliveredUpTo = t.Time
	}
	return b
}

// put queues an event. It returns false if the queue is full.
func (b *outbox) put(e Event, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, again := b.known.Get(e.ID); again {
		return true
	}
	if len(b.queued) >= b.limit {
		return false
	}
	b.known.Add(e.ID, true)
	b.queued = append(b.queued, queued{e, now})
	return true
}

// first is the event to send next; nil when there is none.
func (b *outbox) first() *queued {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queued) == 0 {
		return nil
	}
	q := b.queued[0]
	return &q
}

// done removes the first event, which was delivered or given up.
func (b *outbox) done(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := b.queued[0].Time; at.After(b.deliveredUpTo) {
		b.deliveredUpTo = at
	}
	b.queued = b.queued[1:]
	b.attempts, b.retryAt, b.quietAt = 0, time.Time{}, now.Add(quietAfter)
}

// mark is the time up to which events were delivered. It is not later than an event that is queued: queues are in the order in which
// Releases were read, and after a change of the leader only events from the mark on are derived again.
func (b *outbox) mark() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.deliveredUpTo
	for i := range b.queued {
		if at := b.queued[i].Time; at.Before(out) {
			out = at
		}
	}
	return out
}

// retry notes a failed attempt, and that the next one is after at least a time.
func (b *outbox) retry(now time.Time, after time.Duration) {
	b.retryAt = now.Add(max(backoff(b.attempts), after))
	b.attempts++
}

// backoff is the time until the next attempt after one that failed, as did some before it.
func backoff(before int) time.Duration {
	wait := firstRetry
	for range before {
		wait = min(2*wait, lastRetry)
	}
	return wait
}

// checkIsDue reports whether the receiver is to be checked although no event is queued: attempts to send check it, too.
func (b *outbox) checkIsDue(now time.Time) bool {
	return b.first() == nil && !b.checkAt.IsZero() && !b.checkAt.After(now)
}

// wait is how long until something is due; 0 when nothing will be. Some time after the last delivery deliveredUpTo becomes the present:
// nothing older is to come, and a leader that begins does not send what was delivered again.
func (b *outbox) wait(now time.Time) time.Duration {
	if b.first() != nil {
		return max(b.retryAt.Sub(now), time.Millisecond)
	}
	if !b.quietAt.IsZero() && !b.quietAt.After(now) {
		b.quietAt = time.Time{}
		if now.After(b.deliveredUpTo) {
			b.deliveredUpTo = now
		}
	}
	var next time.Duration
	for _, at := range []time.Time{b.quietAt, b.checkAt} {
		if wait := max(at.Sub(now), time.Millisecond); !at.IsZero() && (next == 0 || wait < next) {
			next = wait
		}
	}
	return next
}

// outboxes are those of all Notifications. It is safe for concurrent use.
type outboxes struct {
	// namespace is Shipper's, whose Notifications are for every namespace.
	namespace string

	mu  sync.Mutex
	all map[types.NamespacedName]*outbox
}

// of is the outbox of a Notification. It is a new one for a Notification that was made again.
func (o *outboxes) of(n *shipper.Notification) *outbox {
	key := types.NamespacedName{Namespace: n.Namespace, Name: n.Name}
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.all[key]
	if b == nil || b.uid != n.UID {
		limit := maxQueued
		if n.Namespace == o.namespace {
			limit = maxOfAll
		}
		b = newOutbox(n, limit)
		o.all[key] = b
	}
	return b
}

func (o *outboxes) forget(key types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, key)
}
