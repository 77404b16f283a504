// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	testingclock "k8s.io/utils/clock/testing"
)

// lease is a lock with given answers.
type lease struct {
	resourcelock.Interface

	answer error
	during func()
}

func (l *lease) Identity() string { return "ours" }

func (l *lease) Create(context.Context, resourcelock.LeaderElectionRecord) error { return l.write() }

func (l *lease) Update(context.Context, resourcelock.LeaderElectionRecord) error { return l.write() }

func (l *lease) write() error {
	if l.during != nil {
		l.during()
	}
	return l.answer
}

func TestWritesWithinTheTermAlone(t *testing.T) {
	ours, others := resourcelock.LeaderElectionRecord{HolderIdentity: "ours"}, resourcelock.LeaderElectionRecord{}
	for sentence, tc := range map[string]struct {
		do   func(t *testing.T, l resourcelock.Interface, of *lease, clock *testingclock.FakePassiveClock)
		want string // part of the refusal; empty: it may write
	}{
		"it never held the Lease": {
			func(*testing.T, resourcelock.Interface, *lease, *testingclock.FakePassiveClock) {},
			"it does not hold the Lease",
		},
		"it has made the Lease": {func(t *testing.T, l resourcelock.Interface, _ *lease, _ *testingclock.FakePassiveClock) {
			must(t, l.Create(t.Context(), ours))
		}, ""},
		"it took the Lease a while ago": {
			func(t *testing.T, l resourcelock.Interface, _ *lease, clock *testingclock.FakePassiveClock) {
				must(t, l.Update(t.Context(), ours))
				clock.SetTime(clock.Now().Add(13*time.Second - 1))
			}, "",
		},
		"it has not renewed the Lease for the whole term": {
			func(t *testing.T, l resourcelock.Interface, _ *lease, clock *testingclock.FakePassiveClock) {
				must(t, l.Update(t.Context(), ours))
				clock.SetTime(clock.Now().Add(13 * time.Second))
			}, "which it last did 13s ago: another may lead",
		},
		"it has renewed the Lease since": {
			func(t *testing.T, l resourcelock.Interface, _ *lease, clock *testingclock.FakePassiveClock) {
				must(t, l.Update(t.Context(), ours))
				clock.SetTime(clock.Now().Add(12 * time.Second))
				must(t, l.Update(t.Context(), ours))
				clock.SetTime(clock.Now().Add(12 * time.Second))
			}, "",
		},
		"it could not renew the Lease": {
			func(t *testing.T, l resourcelock.Interface, of *lease, clock *testingclock.FakePassiveClock) {
				must(t, l.Update(t.Context(), ours))
				clock.SetTime(clock.Now().Add(12 * time.Second))
				of.answer = errors.New("no answer")
				if l.Update(t.Context(), ours) == nil {
					t.Error("the answer is kept back")
				}
				clock.SetTime(clock.Now().Add(2 * time.Second))
			}, "which it last did 14s ago",
		},
		"the answer came when the term was over": {
			func(t *testing.T, l resourcelock.Interface, of *lease, clock *testingclock.FakePassiveClock) {
				of.during = func() { clock.SetTime(clock.Now().Add(20 * time.Second)) }
				must(t, l.Update(t.Context(), ours))
			}, "which it last did 20s ago",
		},
		"it lets the Lease go, and is not notified yet": {
			func(t *testing.T, l resourcelock.Interface, of *lease, _ *testingclock.FakePassiveClock) {
				must(t, l.Update(t.Context(), ours))
				of.answer = errors.New("no answer")
				if l.Update(t.Context(), others) == nil {
					t.Error("the answer is kept back")
				}
			}, "it does not hold the Lease",
		},
		"the time of day was set back": {
			func(t *testing.T, l resourcelock.Interface, _ *lease, clock *testingclock.FakePassiveClock) {
				must(t, l.Update(t.Context(), ours))
				clock.SetTime(clock.Now().Add(-time.Hour))
			}, "",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			clock, of := testingclock.NewFakePassiveClock(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)), &lease{}
			term := New(clock, 13*time.Second)
			tc.do(t, term.Lock(of), of, clock)
			sent := ask(t, term, http.MethodPatch, tc.want)
			if sent != (tc.want == "") {
				t.Errorf("the write was sent: %t", sent)
			}
			if !ask(t, term, http.MethodGet, "") {
				t.Error("it may not even read")
			}
		})
	}
}

// ask makes a request within or outside a term, and reports whether it was sent.
func ask(t *testing.T, term *Fence, method, refusal string) (sent bool) {
	t.Helper()
	body := &closed{Reader: strings.NewReader("{}")}
	request := httptest.NewRequestWithContext(t.Context(), method, "http://cluster/", body)
	answer, err := term.Wrap(next(func(r *http.Request) (*http.Response, error) {
		sent = true
		return &http.Response{StatusCode: http.StatusOK, Body: r.Body}, nil
	})).RoundTrip(request)
	if err == nil {
		must(t, answer.Body.Close())
	}
	if got := err == nil; got != (refusal == "") || err != nil && !strings.Contains(err.Error(), refusal) {
		t.Errorf("the answer is %v, want …%s…", err, refusal)
	}
	if !body.closed {
		t.Error("the body was left open")
	}
	return sent
}

type next func(*http.Request) (*http.Response, error)

func (n next) RoundTrip(r *http.Request) (*http.Response, error) { return n(r) }

type closed struct {
	io.Reader

	closed bool
}

func (c *closed) Close() error {
	c.closed = true
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
