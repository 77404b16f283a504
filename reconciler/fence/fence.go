// SPDX-License-Identifier: Apache-2.0

// Package fence keeps a reconciler from writing when it leads no more and does not know it yet: its process, or the machine it
// runs on, stood still for longer than its Lease lasts, or the API server that keeps the Lease cannot be reached, and another
// may have taken over. What it remembers would undo what the other has done since.
package fence

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
)

// Fence is the time for which this process may write, since it last renewed its Lease. It is safe for concurrent use.
type Fence struct {
	clock         clock.PassiveClock
	leaseDuration time.Duration

	mu sync.Mutex
	// renewed is when the request was made that last renewed the Lease; zero while it is not this process's.
	renewed time.Time
	// lost is true once another process was seen to hold the Lease after this one did: its caches are out of date from then on.
	lost bool
}

// ErrNotLeader is wrapped by what refuses a write. It says nothing of the cluster that the write was for.
var ErrNotLeader = errors.New("this reconciler writes nothing")

// New returns a Term that has not begun. It lasts for a time after each renewal, which should be shorter than the Lease lasts by what a
// request may be under way.
func New(c clock.PassiveClock, lasts time.Duration) *Fence {
	return &Fence{clock: c, leaseDuration: lasts}
}

// expired is the error of a write outside the term; nil within.
func (t *Fence) expired() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.renewed.IsZero() {
		return fmt.Errorf("%w: it does not hold the Lease of the one that leads", ErrNotLeader)
	}
	since := Since(t.clock.Now(), t.renewed)
	if since < t.leaseDuration {
		return nil
	}
	return fmt.Errorf("%w until it has renewed its Lease, which it last did %s ago: another may lead", ErrNotLeader, since.Round(time.Second))
}

// Since is how long ago then was, by the clock that says more: the one that counts on without being set stands still with a machine that is
// suspended, and the wall clock may be set back.
func Since(now, then time.Time) time.Duration {
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0)))
}

// Wrap returns a transport that sends what only reads, and everything else within the term alone.
func (t *Fence) Wrap(next http.RoundTripper) http.RoundTripper {
	return &transport{fence: t, next: next}
}

// transport is one that Wrap returns.
type transport struct {
	fence *Fence
	next  http.RoundTripper
}

var _ utilnet.RoundTripperWrapper = (*transport)(nil)

// RoundTrip is http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return t.next.RoundTrip(request)
	}
	if err := t.fence.expired(); err != nil {
		if request.Body != nil {
			_ = request.Body.Close() // a transport closes what it does not send
		}
		return nil, err
	}
	return t.next.RoundTrip(request)
}

// WrappedRoundTripper lets idle connections be closed.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// Lock returns a lock that reports each renewal of the Lease to the fence. Its own requests must not go through Wrap.
func (t *Fence) Lock(of resourcelock.Interface) resourcelock.Interface {
	return &lock{Interface: of, fence: t}
}

// lock is one that Lock returns.
type lock struct {
	resourcelock.Interface

	fence *Fence
}

// Get is resourcelock.Interface.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && record.HolderIdentity != l.Identity() {
		l.fence.lose()
	}
	return record, raw, err
}

// Create is resourcelock.Interface.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update is resourcelock.Interface.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

// write begins or renews the term, from before the request on, or ends it before the Lease is let go. That a request failed says
// nothing: the term runs out by itself.
func (l *lock) write(
	ctx context.Context, record resourcelock.LeaderElectionRecord, write func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	if l.fence.isLost() {
		return errors.New("another has led since: the Lease is neither taken back nor let go")
	}
	asked := l.fence.clock.Now()
	if record.HolderIdentity != l.Identity() {
		l.fence.renew(time.Time{})
		return write(ctx, record)
	}
	if err := write(ctx, record); err != nil {
		return err
	}
	l.fence.renew(asked)
	return nil
}

func (t *Fence) renew(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.renewed = at
}

// lose ends the term for good, if it ever began.
func (t *Fence) lose() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost, t.renewed = t.lost || !t.renewed.IsZero(), time.Time{}
}

func (t *Fence) isLost() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lost
}
