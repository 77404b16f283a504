// SPDX-License-Identifier: Apache-2.0

// Package bounds keeps one caller of the webhook from delaying another. It bounds the time in which a review arrives and is
// judged, the number of reviews judged at a time, their memory, and the number of connections. Above a bound, the callers with
// the largest share lose first.
package bounds

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"shipper.dev/shipper/chart/keyedsemaphore"
)

// Bounds of one review.
const (
	// maxBody holds two objects of 3 MiB, the maximum of an API server, and the rest of the review.
	maxBody = 8 << 20
	// arrival is how long a review may take to arrive. API servers send it at once.
	arrival = 2 * time.Second
	// defaultTimeout is the timeout of a caller that sends none. maxTimeout bounds the timeout that a caller sends: twice that of
	// manifests/webhook.
	defaultTimeout = 5 * time.Second
	maxTimeout     = 10 * time.Second
	// margin is the part of that time reserved for the way of the answer.
	margin = 500 * time.Millisecond
)

var (
	errLate = errors.New("the review did not arrive within its time")
	errBusy = errors.New("shipper's webhook has more to judge than it can; try again")
)

// Bounds are the bounds of all reviews together. They are safe for concurrent use.
type Bounds struct {
	clock     clock.PassiveClock
	lanes     []*lane
	inFlight  *inFlight
	compilers *keyedsemaphore.Semaphore
}

// New returns the bounds of one server.
func New(c clock.PassiveClock) *Bounds {
	return &Bounds{clock: c, lanes: newLanes(), inFlight: newInFlight(maxMemory), compilers: compilers()}
}

// Handler lets next answer reviews that have arrived completely and got a slot. The others get 408, 411, 413 or 503.
func (b *Bounds) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), compilersKey{}, b.compilers), timeoutFor(r))
		defer cancel()
		if err := b.serve(ctx, w, r, next); err != nil {
			http.Error(w, err.Error(), codeOf(err))
		}
	})
}

// serve reads a review, waits for a slot and has it answered. An error means that nothing was answered yet.
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

// timeoutFor is the time for a review: a little less than the caller's parameter timeout.
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
