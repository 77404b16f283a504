// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const (
	// suspicion is how long a request may wait for its answer before the heartbeat looks whether anything answers.
	suspicion = 2 * time.Second
	// answerTimeout is how long a request may wait for its answer while the cluster lives: somewhat longer than the
	// API server itself waits for an admission webhook by default.
	answerTimeout = 12 * time.Second
)

// errNoAnswer is why a request was given up.
var errNoAnswer = fmt.Errorf("no answer within %s: %w", answerTimeout, context.DeadlineExceeded)

// answers is a transport to one cluster for one session. No request outlasts the session, so that a worker that waits for a
// cluster that is lost waits no longer. Watches are not bounded: they end with the caches.
type answers struct {
	next http.RoundTripper
	done context.Context // of the session
	// suspected has one element when a request waits for long, or a watch cannot be begun.
	suspected chan struct{}
	// count grows with every answer that comes from the API server itself.
	count atomic.Int64
	// heard grows with all that is read of answers, those to watches too.
	heard atomic.Int64
}

func newAnswers(session context.Context, next http.RoundTripper) *answers {
	if next == nil { // plain HTTP without credentials
		next = http.DefaultTransport
	}
	return &answers{next: next, done: session, suspected: make(chan struct{}, 1)}
}

// RoundTrip sends a request and waits for the head of its answer. Once that has come, the rest may take its time.
func (a *answers) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Has("watch") {
		return a.watch(request)
	}
	ctx, cancel := context.WithCancelCause(request.Context())
	leave := context.AfterFunc(a.done, func() { cancel(context.Cause(a.done)) })
	end := func() {
		leave()
		cancel(nil)
	}
	trust := after(ctx, suspicion, a.suspect)
	hope := after(ctx, answerTimeout, func() { cancel(errNoAnswer) })
	answer, err := a.next.RoundTrip(request.WithContext(ctx))
	trust()
	hope()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		end()
		return nil, err
	}
	if answer.StatusCode < http.StatusInternalServerError {
		a.count.Add(1)
	}
	answer.Body = &body{ReadCloser: answer.Body, heard: &a.heard, end: sync.OnceFunc(end)}
	return answer, nil
}

// watch begins a watch. A watch that gets no answer would be tried again from the last resource version, and would continue
// silently after the API server was restored to an earlier time: caches would have objects that never existed. Therefore the
// heartbeat probes at once, and a lost cluster is read again.
func (a *answers) watch(request *http.Request) (*http.Response, error) {
	answer, err := a.next.RoundTrip(request)
	if err != nil && request.Context().Err() == nil || err == nil && answer.StatusCode >= http.StatusInternalServerError {
		a.suspect()
	}
	if err == nil {
		answer.Body = &body{ReadCloser: answer.Body, heard: &a.heard, end: func() {}}
	}
	return answer, err
}

// after does something when a time has passed, unless ctx is done or stop is called before.
func after(ctx context.Context, wait time.Duration, do func()) (stop func()) {
	timer, cancel := context.WithTimeout(ctx, wait)
	leave := context.AfterFunc(timer, func() {
		if ctx.Err() == nil {
			do()
		}
	})
	return func() {
		leave()
		cancel()
	}
}

// WrappedRoundTripper lets idle connections be closed.
func (a *answers) WrappedRoundTripper() http.RoundTripper {
	return a.next
}

var _ utilnet.RoundTripperWrapper = (*answers)(nil)

// suspect asks the heartbeat to look at once.
func (a *answers) suspect() {
	select {
	case a.suspected <- struct{}{}:
	default:
	}
}

// body is that of an answer.
type body struct {
	io.ReadCloser
	heard *atomic.Int64
	end   func()
}

// Read counts what comes.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.heard.Add(int64(n))
	return n, err
}

// Close lets go of what watched over the request.
func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
