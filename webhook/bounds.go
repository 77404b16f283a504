// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net/http"
	"time"

	"k8s.io/utils/clock"
)

// Bounds of one request.
const (
	// maxBody holds two objects of the 3 MiB that an API server takes, and what is said about them.
	maxBody = 8 << 20
	// readTime is what a client has to send its request.
	readTime = 10 * time.Second
	// patience is how long is thought about a request whose sender does not say how long it waits.
	patience = 5 * time.Second
	// margin is what is left of the sender's patience for the answer to travel.
	margin = 500 * time.Millisecond
)

// bounded gives each request a size, a time to arrive and a time to be answered in: a little less than the API server
// says, in the parameter timeout, that it waits.
func bounded(c clock.PassiveClock, next http.Handler) http.Handler {
	return http.MaxBytesHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Servers that cannot set a deadline, as in tests, need none.
		_ = http.NewResponseController(w).SetReadDeadline(c.Now().Add(readTime))
		// A server that is shutting down cancels the contexts of the requests it still answers.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), timeFor(r))
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	}), maxBody)
}

func timeFor(r *http.Request) time.Duration {
	asked, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || asked <= 0 {
		return patience - margin
	}
	return max(asked-margin, asked/2)
}
