// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

// store is an API server that keeps one Lease; seen is the version that this lock has read, as resourcelock.LeaseLock.
type store struct {
	mu            sync.Mutex
	version, seen int
	record        resourcelock.LeaderElectionRecord
	hangs         atomic.Bool
}

func (s *store) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version == 0 {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{}, "lease")
	}
	s.seen = s.version
	record := s.record
	raw, _ := json.Marshal(record)
	return &record, raw, nil
}

func (s *store) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return s.Update(ctx, r)
}

func (s *store) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if s.hangs.Load() { // until the process goes on, when all its deadlines have passed
		<-ctx.Done()
		s.hangs.Store(false)
		s.mu.Lock()
		s.version++
		s.record.HolderIdentity, s.record.LeaderTransitions = "theirs", s.record.LeaderTransitions+1
		s.mu.Unlock()
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen != s.version {
		return apierrors.NewConflict(schema.GroupResource{}, "lease", nil)
	}
	s.version++
	s.seen, s.record = s.version, r
	return nil
}

func (s *store) RecordEvent(string) {}
func (s *store) Identity() string   { return "ours" }
func (s *store) Describe() string   { return "lease" }

// elect has the lock of a term taken, and renewed every half a second.
func elect(t *testing.T, term *Fence, s *store, begin func()) (stopped chan struct{}) {
	t.Helper()
	stopped = make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: term.Lock(s), LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 500 * time.Millisecond,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { begin() }, OnStoppedLeading: func() { close(stopped) },
		},
	})
	must(t, err)
	go elector.Run(t.Context())
	return stopped
}

// TestWhoWasReplacedMeanwhileDoesNotGoOn has a reconciler stand still between two renewals for as long as another leads and gives the Lease
// up. Renewing would take it back without ever having stopped, with what it remembers from before and what it was about to write.
func TestWhoWasReplacedMeanwhileDoesNotGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, clock := &store{}, testingclock.NewFakePassiveClock(time.Now())
		term := New(clock, 13*time.Second)
		stopped := elect(t, term, s, func() {})
		time.Sleep(100 * time.Millisecond)
		must(t, term.expired())

		s.mu.Lock()
		clock.SetTime(clock.Now().Add(20 * time.Second))
		s.version += 2
		s.record.HolderIdentity, s.record.LeaderTransitions = "", s.record.LeaderTransitions+1
		s.mu.Unlock()
		if term.expired() == nil {
			t.Error("it may write at once")
		}
		time.Sleep(time.Second)
		if term.expired() == nil {
			t.Error("it writes again, with what it knew before another led")
		}
		<-stopped
	})
}

// TestWhoSeesAnotherHoldTheLeaseWritesNothing hands the Lease over, or delete it so that another is faster: that is seen with
// the next renewal, and the process lives for ten seconds more.
func TestWhoSeesAnotherHoldTheLeaseWritesNothing(t *testing.T) {
	s, c := &store{}, testingclock.NewFakePassiveClock(time.Now())
	term := New(c, 13*time.Second)
	l := term.Lock(s)
	must(t, l.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "ours"}))
	s.version++
	s.record.HolderIdentity = "theirs"
	c.SetTime(c.Now().Add(2 * time.Second))
	if l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "ours"}) == nil {
		t.Fatal("no conflict")
	}
	_, _, err := l.Get(t.Context())
	must(t, err)
	if term.expired() == nil {
		t.Error("it writes on")
	}
}

// TestWhoWasReplacedLetsNoLeaseGoOfAnother has a reconciler stand still while it renews, and another take over. When it goes on its time is
// up, and it lets go what it saw last, which is not its own any more.
func TestWhoWasReplacedLetsNoLeaseGoOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		<-elect(t, New(clock.RealClock{}, 13*time.Second), s, func() { s.hangs.Store(true) })
		if s.record.HolderIdentity != "theirs" {
			t.Errorf("the Lease is held by %q", s.record.HolderIdentity)
		}
	})
}
