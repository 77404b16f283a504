// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// tolerated is how long a watch may be closed in order before it counts as down: API servers end every watch after some
// minutes, and the client reopens it at once. A lost one counts as down at once. settling is the time in which a reopened watch
// delivers the events that were missed.
const (
	tolerated = time.Second
	settling  = time.Second
)

// Stream reports whether the watch of RolloutBlocks is up. It observes the requests themselves: wrap it around the transport of
// the watches.
type Stream struct {
	clock clock.PassiveClock

	mu           sync.Mutex
	open         int       // number of open watches
	disconnected time.Time // when the last one closed
	reconnected  time.Time // when one was open again after that; zero if none was
	// broken is true if the last one ended by an error, such as an unanswered ping.
	broken bool
}

// The transport below must send a ping on a connection that was silent for PingAfter, and close it when no answer comes within
// PingTimeout. That ends the watches on it.
const (
	PingAfter   = time.Second
	PingTimeout = time.Second
)

// MaxStaleness is how old the cache can be when the API server disappears without closing connections.
const MaxStaleness = PingAfter + PingTimeout

// NewStream returns a Stream without a watch.
func NewStream(c clock.PassiveClock) *Stream { return &Stream{clock: c} }

// Up reports whether the watch is reliable.
func (s *Stream) Up() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	if s.open == 0 {
		return !s.broken && now.Sub(s.disconnected) <= tolerated
	}
	return s.reconnected.IsZero() || now.Sub(s.reconnected) > settling
}

// Down is how long the watch has not been reliable; zero while it is.
func (s *Stream) Down() time.Duration {
	if s.Up() {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock.Since(s.disconnected)
}

// Wrap tracks the watches that go through next.
func (s *Stream) Wrap(next http.RoundTripper) http.RoundTripper { return trackWatch{s, next} }

func (s *Stream) opened() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.clock.Now(); s.open == 0 && !s.disconnected.IsZero() && (s.broken || now.Sub(s.disconnected) > tolerated) {
		s.reconnected = now
	}
	s.broken = false
	s.open++
}

// ended records the end of a watch; err is nil if it ended in order.
func (s *Stream) ended(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	s.disconnected, s.broken = s.clock.Now(), err != nil
}

// trackWatch is a transport that tracks watches of RolloutBlocks.
type trackWatch struct {
	stream *Stream
	next   http.RoundTripper
}

// RoundTrip is http.RoundTripper.
func (f trackWatch) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := f.next.RoundTrip(r)
	if err != nil || response.StatusCode != http.StatusOK || !watchesBlocks(r) {
		return response, err
	}
	f.stream.opened()
	response.Body = &body{ReadCloser: response.Body, stream: f.stream}
	return response, nil
}

// WrappedRoundTripper lets client-go find the wrapped transport.
func (f trackWatch) WrappedRoundTripper() http.RoundTripper { return f.next }

func watchesBlocks(r *http.Request) bool {
	watch := r.URL.Query().Get("watch")
	return strings.HasSuffix(r.URL.Path, "/rolloutblocks") && (watch == "true" || watch == "1")
}

// body reports once that the response ends.
type body struct {
	io.ReadCloser

	stream *Stream
	once   sync.Once
}

// Read is io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		b.ended(nil)
	case err != nil:
		b.ended(err)
	}
	return n, err
}

// Close is io.Closer.
func (b *body) Close() error {
	b.ended(nil)
	return b.ReadCloser.Close()
}

func (b *body) ended(err error) { b.once.Do(func() { b.stream.ended(err) }) }
