// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// serve serves judge over TLS, with HTTP/2 or without.
func serve(t *testing.T, http2 bool, judge http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(bounded(clock.RealClock{}, newLanes(), judge))
	server.EnableHTTP2 = http2
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// send posts body and returns the code of the answer, 0 when there is none.
func send(t *testing.T, server *httptest.Server, query string, body io.Reader) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/"+query, body)
	if err != nil {
		t.Error(err)
		return 0
	}
	response, err := server.Client().Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// reads reads the whole body, as the decoder of reviews does.
func reads(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func eachProtocol(t *testing.T, test func(t *testing.T, http2 bool)) {
	t.Helper()
	for _, http2 := range []bool{false, true} {
		t.Run(map[bool]string{false: "HTTP/1.1", true: "HTTP/2"}[http2], func(t *testing.T) { test(t, http2) })
	}
}

func TestLargeRequestsAreNotReadWhole(t *testing.T) {
	eachProtocol(t, func(t *testing.T, http2 bool) {
		server := serve(t, http2, reads)
		if code := send(t, server, "", bytes.NewReader(make([]byte, maxBody))); code != http.StatusOK {
			t.Errorf("the largest that is taken: %d", code)
		}
		// Whoever is told early may see the connection end before the answer.
		if code := send(t, server, "", bytes.NewReader(make([]byte, maxBody+1))); code != http.StatusBadRequest && code != 0 {
			t.Errorf("one that is larger: %d", code)
		}
		endless := io.LimitReader(zeros{}, 1<<30) // its length is not told
		if code := send(t, server, "", endless); code != http.StatusBadRequest && code != 0 {
			t.Errorf("one that does not end: %d", code)
		}
	})
}

// zeros has no end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestSlowRequestsAreNotWaitedFor(t *testing.T) {
	eachProtocol(t, func(t *testing.T, http2 bool) {
		took := make(chan time.Duration, 1)
		server := serve(t, http2, func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			reads(w, r)
			took <- time.Since(began)
		})
		never, writer := io.Pipe()
		t.Cleanup(func() { _ = writer.Close() })
		go send(t, server, "?timeout=400ms", io.MultiReader(strings.NewReader("{"), never))
		select {
		case d := <-took:
			if d < 100*time.Millisecond || d > 2*time.Second {
				t.Errorf("it was waited for %s", d)
			}
		case <-time.After(10 * time.Second):
			t.Error("it is still waited for")
		}
	})
}

func TestLargeRequestsWaitForLargeOnesOnly(t *testing.T) {
	eachProtocol(t, func(t *testing.T, http2 bool) {
		inside, leave := make(chan struct{}), make(chan struct{})
		server := serve(t, http2, func(_ http.ResponseWriter, r *http.Request) {
			if r.ContentLength > lightBody {
				inside <- struct{}{}
				<-leave
			}
		})
		large := func() *bytes.Reader { return bytes.NewReader(make([]byte, lightBody+1)) }
		done := make(chan int)
		for range heavyAtATime {
			go func() { done <- send(t, server, "?timeout=20s", large()) }()
			<-inside
		}
		if code := send(t, server, "?timeout=100ms", large()); code != http.StatusServiceUnavailable {
			t.Errorf("one more large request: %d", code)
		}
		if code := send(t, server, "?timeout=100ms", strings.NewReader("{}")); code != http.StatusOK {
			t.Errorf("a small one: %d", code)
		}
		if code := send(t, server, "?timeout=100ms", io.LimitReader(strings.NewReader("{}"), 2)); code != http.StatusServiceUnavailable {
			t.Errorf("one that does not tell how large it is: %d", code)
		}
		close(leave)
		for range heavyAtATime {
			if code := <-done; code != http.StatusOK {
				t.Errorf("one of those inside: %d", code)
			}
		}
	})
}

func TestHowLongIsThoughtAbout(t *testing.T) {
	for query, want := range map[string]time.Duration{
		"":               4500 * time.Millisecond,
		"?timeout=x":     4500 * time.Millisecond,
		"?timeout=-1s":   4500 * time.Millisecond,
		"?timeout=10s":   9500 * time.Millisecond,
		"?timeout=1s":    500 * time.Millisecond,
		"?timeout=600ms": 300 * time.Millisecond,
		"?timeout=24h":   29500 * time.Millisecond,
	} {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/"+query, nil)
		if got := timeFor(r); got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
}
