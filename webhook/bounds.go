// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/utils/clock"
)

// Bounds of one request. What comes before one is read, how long headers may be and take, is the server's.
const (
	// maxBody holds two objects of the 3 MiB that an API server takes, and what is said about them.
	maxBody = 8 << 20
	// patience is how long is thought about a request whose sender does not say how long it waits.
	patience = 5 * time.Second
	// longest is what API servers wait at most.
	longest = 30 * time.Second
	// margin is what is left of the sender's patience for the answer to travel.
	margin = 500 * time.Millisecond
)

// Bounds of all requests together. A body takes several times its length while it is judged, and anybody who may write an
// Application may send large ones, many at a time. They wait for one another, and nobody else waits for them.
const (
	// lightBody is what the bodies of nearly all requests stay below.
	lightBody    = 128 << 10
	lightAtATime = 256
	heavyAtATime = 4
)

// lanes let in a number of requests at a time.
type lanes struct{ light, heavy *semaphore.Weighted }

func newLanes() *lanes {
	return &lanes{light: semaphore.NewWeighted(lightAtATime), heavy: semaphore.NewWeighted(heavyAtATime)}
}

// of is the lane of a request: the heavy one unless it says that it is light. It cannot send more than it says.
func (l *lanes) of(r *http.Request) *semaphore.Weighted {
	if r.ContentLength >= 0 && r.ContentLength <= lightBody {
		return l.light
	}
	return l.heavy
}

// bounded gives each request a size, a time to arrive and a time to be answered in: a little less than the API server
// says, in the parameter timeout, that it waits. Those that no room is found for in that time are sent away unread.
func bounded(c clock.PassiveClock, l *lanes, next http.Handler) http.Handler {
	return http.MaxBytesHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		budget := timeFor(r)
		// Servers that cannot set a deadline, as in tests, need none.
		deadlines := http.NewResponseController(w)
		_ = deadlines.SetReadDeadline(c.Now().Add(budget))
		_ = deadlines.SetWriteDeadline(c.Now().Add(budget + patience))
		// A server that is shutting down cancels the contexts of the requests it still answers.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), budget)
		defer cancel()
		lane := l.of(r)
		if lane.Acquire(ctx, 1) != nil {
			http.Error(w, "shipper's webhook has more to judge than it can; try again", http.StatusServiceUnavailable)
			return
		}
		defer lane.Release(1)
		next.ServeHTTP(w, r.WithContext(ctx))
	}), maxBody)
}

func timeFor(r *http.Request) time.Duration {
	asked, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || asked <= 0 {
		return patience - margin
	}
	asked = min(asked, longest)
	return max(asked-margin, asked/2)
}
