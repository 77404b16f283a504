// SPDX-License-Identifier: Apache-2.0

package term

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
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

func (s *store) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error { return s.Update(ctx, r) }

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

// A reconciler stands still between two renewals for as long as another leads, and gives the Lease up. It takes it back in the loop
// that renews it, without ever having stopped: what it remembers is from before, and what it was about to write too.
func TestWhoWasReplacedMeanwhileDoesNotGoOn(t *testing.T) {
	s, c := &store{}, testingclock.NewFakePassiveClock(time.Now())
	term := New(c, 13*time.Second)
	var began atomic.Int32
	stopped := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: term.Lock(s), LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 500 * time.Millisecond,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { began.Add(1) },
			OnStoppedLeading: func() { close(stopped) },
		},
	})
	must(t, err)
	go elector.Run(t.Context())
	for began.Load() == 0 || term.over() != nil {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond) // now it waits for the next renewal

	s.mu.Lock() // it stands still for 20 s, in which another takes the Lease, works and is stopped
	c.SetTime(c.Now().Add(20 * time.Second))
	s.version += 2
	s.record.HolderIdentity, s.record.LeaderTransitions = "", s.record.LeaderTransitions+1
	s.mu.Unlock()

	if term.over() == nil {
		t.Fatal("it may write at once")
	}
	select {
	case <-stopped:
	case <-time.After(1500 * time.Millisecond):
	}
	if term.over() == nil {
		t.Errorf("it writes again after another led, with what it knew before; it began to lead %d times", began.Load())
	}
}

// A write that was within the term when it was handed over is sent when there is a connection, however late.
func TestAWriteIsNotSentWhenTheTermEndsWhileItWaitsForAConnection(t *testing.T) {
	var got atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
	defer server.Close()
	c := testingclock.NewFakePassiveClock(time.Now())
	term := New(c, 13*time.Second)
	must(t, term.Lock(&lease{}).Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "ours"}))
	rt := term.Wrap(&http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c.SetTime(c.Now().Add(20 * time.Second)) // the network is slow, or the process stands still
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, server.URL, strings.NewReader("{}"))
	must(t, err)
	if answer, err := rt.RoundTrip(request); err == nil {
		_ = answer.Body.Close()
	}
	if got.Load() > 0 {
		t.Error("it was sent 20 s after the Lease was renewed")
	}
}

var _ = clock.RealClock{}

// Somebody hands the Lease over by hand, or deletes it and another is faster: that is seen with the next renewal, and the process
// lives for ten seconds more.
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
	if term.over() == nil {
		t.Error("it writes on")
	}
}

// A reconciler stands still while it renews its Lease, and another takes over. When it goes on its time is up, and it lets the Lease
// go, which is not its own: client-go looks at what it saw last.
func TestWhoWasReplacedLetsNoLeaseGoOfAnother(t *testing.T) {
	s := &store{}
	term := New(clock.RealClock{}, 13*time.Second)
	stopped := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: term.Lock(s), LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 500 * time.Millisecond,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { s.hangs.Store(true) }, OnStoppedLeading: func() { close(stopped) },
		},
	})
	must(t, err)
	go elector.Run(t.Context())
	<-stopped
	if s.record.HolderIdentity != "theirs" {
		t.Errorf("the Lease is held by %q", s.record.HolderIdentity)
	}
}
