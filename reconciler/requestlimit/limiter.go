// SPDX-License-Identifier: Apache-2.0

// Package requestlimit bounds how many requests to one API server are under way. Those that wait take turns by namespace, and of none
// may all
// be: where the API server is what everything waits for, one team's thousand changes leave another's one its share of it.
package requestlimit

import (
	"context"
	"net/http"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"shipper.dev/shipper/chart/keyedsemaphore"
)

// Limiter are those to one API server. It is safe for concurrent use.
type Limiter struct {
	semaphore *keyedsemaphore.Semaphore
}

// New has so many requests under way at most, and of these, of each namespace, three of four: there is always room for somebody else.
func New(most int) *Limiter {
	return &Limiter{semaphore: keyedsemaphore.New(most, most*3/4)}
}

// Enter waits until a request may be made, or ctx is done, which is its error. Who may make it has to leave.
func (r *Limiter) Enter(ctx context.Context, request *http.Request) error {
	return r.semaphore.Enter(ctx, namespaceOf(request.URL.Path))
}

// Leave is to be called when the request has been answered.
func (r *Limiter) Leave(request *http.Request) { r.semaphore.Leave(namespaceOf(request.URL.Path)) }

// Wrap returns a transport that makes requests when they may be made. Watches, which stay, are not counted.
func (r *Limiter) Wrap(next http.RoundTripper) http.RoundTripper {
	return &transport{requests: r, next: next}
}

// transport is one that Wrap returns.
type transport struct {
	requests *Limiter
	next     http.RoundTripper
}

var _ utilnet.RoundTripperWrapper = (*transport)(nil)

// RoundTrip is http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Has("watch") {
		return t.next.RoundTrip(request)
	}
	if err := t.requests.Enter(request.Context(), request); err != nil {
		if request.Body != nil {
			_ = request.Body.Close() // a transport closes what it does not send
		}
		return nil, err
	}
	defer t.requests.Leave(request)
	return t.next.RoundTrip(request)
}

// WrappedRoundTripper lets idle connections be closed.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// namespaceOf is that of the objects a request is about; empty where they are in none, or in all. What leads to an API server may be a
// path of another, and name one too.
func namespaceOf(path string) string {
	const before = "/namespaces/"
	i := strings.LastIndex(path, before)
	if i < 0 {
		return ""
	}
	namespace, _, _ := strings.Cut(path[i+len(before):], "/")
	return namespace
}
