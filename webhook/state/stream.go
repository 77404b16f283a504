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

// How soon a watch that has ended in order is doubted: API servers end every watch after some minutes, and it is opened again at once. One
// that was lost is doubted at once. What was missed takes a moment to arrive on one that was opened again.
const (
	tolerated = time.Second
	settling  = time.Second
)

// Stream knows whether the watch of RolloutBlocks is up, from the requests themselves: it is to be wrapped around the
// transport that watches go through.
type Stream struct {
	clock clock.PassiveClock

	mu           sync.Mutex
	open         int       // watches that are
	disconnected time.Time // when there was none any more
	reconnected  time.Time // when there was one again after it was missed; zero if it never was
	// broken is true when the last one ended by an error, such as a connection on which no ping was answered.
	broken bool
}

// The transport below must ask for a sign of life on a connection where nothing was heard for PingAfter, and end it when
// none comes within PingTimeout. That ends the watches on it.
const (
	PingAfter   = time.Second
	PingTimeout = time.Second
)

// MaxStaleness is how old what is judged by can be when the API server is lost without a word.
const MaxStaleness = PingAfter + PingTimeout

// NewStream returns a Stream without a watch.
func NewStream(c clock.PassiveClock) *Stream { return &Stream{clock: c} }

// Up reports whether the watch can be relied on.
func (s *Stream) Up() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	if s.open == 0 {
		return !s.broken && now.Sub(s.disconnected) <= tolerated
	}
	return s.reconnected.IsZero() || now.Sub(s.reconnected) > settling
}

// Down is how long there has been no watch that can be relied on; zero while there is one.
func (s *Stream) Down() time.Duration {
	if s.Up() {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock.Since(s.disconnected)
}

// Wrap follows the watches that go through next.
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

// ended notes that a watch ended, and why, if not in order.
func (s *Stream) ended(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	s.disconnected, s.broken = s.clock.Now(), err != nil
}

// trackWatch is a transport whose watches of RolloutBlocks are followed.
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

// WrappedRoundTripper lets client-go find what is below.
func (f trackWatch) WrappedRoundTripper() http.RoundTripper { return f.next }

func watchesBlocks(r *http.Request) bool {
	watch := r.URL.Query().Get("watch")
	return strings.HasSuffix(r.URL.Path, "/rolloutblocks") && (watch == "true" || watch == "1")
}

// body tells once when there is no more to be read.
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
