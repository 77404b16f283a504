// SPDX-License-Identifier: Apache-2.0

// Package bounds keeps one caller of the webhook from holding up another: it bounds how long a review may take to arrive and to be judged,
// how many are judged at a time, how much memory they take, and how many connections there are. Where there is too much, those lose first
// who have the most.
package bounds

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"k8s.io/utils/clock"
)

// Bounds of one review.
const (
	// maxBody holds two objects of the 3 MiB that an API server takes, and what is said about them.
	maxBody = 8 << 20
	// arrival is how long a review may take to arrive. API servers send it at once.
	arrival = 2 * time.Second
	// defaultTimeout is how long a caller waits that does not say it, and maxTimeout the longest that is believed: twice what
	// manifests/webhook has.
	defaultTimeout = 5 * time.Second
	maxTimeout     = 10 * time.Second
	// margin is what is left of that time for the answer to travel.
	margin = 500 * time.Millisecond
)

var (
	errLate = errors.New("the review did not arrive within its time")
	errBusy = errors.New("shipper's webhook has more to judge than it can; try again")
)

// Bounds are the bounds of all reviews together. They are safe for concurrent use.
type Bounds struct {
	clock    clock.PassiveClock
	lanes    []*lane
	inFlight *inFlight
}

// New returns the bounds of one server.
func New(c clock.PassiveClock) *Bounds {
	return &Bounds{clock: c, lanes: newLanes(), inFlight: newInFlight(maxMemory)}
}

// Handler has next answer reviews that have arrived whole, when it is their turn. The others get 408, 411, 413 or 503.
func (b *Bounds) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), timeoutFor(r))
		defer cancel()
		if err := b.serve(ctx, w, r, next); err != nil {
			http.Error(w, err.Error(), codeOf(err))
		}
	})
}

// serve reads a review, waits for its turn and has it answered. An error means that nothing was answered yet.
func (b *Bounds) serve(ctx context.Context, w http.ResponseWriter, r *http.Request, next http.Handler) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	review := &review{address: addressOf(r.RemoteAddr), began: b.clock.Now(), end: end}
	b.inFlight.add(review)
	defer b.inFlight.remove(review)
	body, err := b.read(ctx, w, r, review)
	if err != nil {
		return err
	}
	namespace := namespaceOf(body)
	b.inFlight.arrived(review, namespace)
	leave, err := laneFor(b.lanes, len(body)).enter(ctx, review.address, namespace)
	if err != nil {
		return errBusy
	}
	defer leave()
	if !b.inFlight.judge(review) {
		return errBusy
	}
	defer judging(ctx, b.clock)()
	r = r.WithContext(ctx)
	r.Body = whole(body)
	next.ServeHTTP(w, r)
	return nil
}

// timeoutFor is how long a review may take: a little less than its caller waits, who says so in the parameter timeout.
func timeoutFor(r *http.Request) time.Duration {
	asked, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || asked <= 0 {
		asked = defaultTimeout
	}
	asked = min(asked, maxTimeout)
	return max(asked-margin, asked/2)
}

// addressOf is the host of a remote address.
func addressOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	return host
}

func codeOf(err error) int {
	var coded *refused
	switch {
	case errors.As(err, &coded):
		return coded.code
	case errors.Is(err, errLate):
		return http.StatusRequestTimeout
	default:
		return http.StatusServiceUnavailable
	}
}
