// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"shipper.dev/shipper/test/pipe"
)

// serve serves judge over TLS, with HTTP/2 or without, in memory.
func serve(t *testing.T, http2 bool, judge http.HandlerFunc) *httptest.Server {
	t.Helper()
	listener := pipe.Listen()
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: New(clock.RealClock{}).Handler(judge)}, EnableHTTP2: http2}
	server.StartTLS()
	transport, is := server.Client().Transport.(*http.Transport)
	if !is {
		t.Fatalf("the client's transport is %T", server.Client().Transport)
	}
	transport.DialContext = listener.Dial
	t.Cleanup(server.Close)
	return server
}

// send posts a body of a declared length and returns the code of the answer, 0 when there is none.
func send(t *testing.T, server *httptest.Server, query string, body io.Reader, length int64) int {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/"+query, body)
	if err != nil {
		t.Error(err)
		return 0
	}
	request.ContentLength = length
	response, err := server.Client().Do(request)
	if err != nil {
		return 0
	}
	code := response.StatusCode
	cancel() // closing waits for a body that is still being sent
	_ = response.Body.Close()
	return code
}

// sendBytes posts n bytes.
func sendBytes(t *testing.T, server *httptest.Server, query string, n int) int {
	t.Helper()
	return send(t, server, query, bytes.NewReader(make([]byte, n)), int64(n))
}

func eachProtocol(t *testing.T, test func(t *testing.T, http2 bool)) {
	t.Helper()
	for _, http2 := range []bool{false, true} {
		t.Run(map[bool]string{false: "HTTP/1.1", true: "HTTP/2"}[http2], func(t *testing.T) { test(t, http2) })
	}
}

// inBubble makes a test one in virtual time: how long a review takes to arrive there does not depend on the machine.
func inBubble(test func(t *testing.T, http2 bool)) func(t *testing.T, http2 bool) {
	return func(t *testing.T, http2 bool) {
		synctest.Test(t, func(t *testing.T) { test(t, http2) })
	}
}

func TestAReviewIsReadWholeBeforeItIsJudged(t *testing.T) {
	eachProtocol(t, inBubble(func(t *testing.T, http2 bool) {
		got := make(chan int, 1)
		server := serve(t, http2, func(_ http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			got <- len(body)
		})
		for _, n := range []int{0, 1, firstRead, firstRead + 1, 100_001, maxBody} {
			if code := sendBytes(t, server, "", n); code != http.StatusOK {
				t.Errorf("of %d bytes: %d", n, code)
			} else if read := <-got; read != n {
				t.Errorf("of %d bytes it read %d", n, read)
			}
		}
	}))
}

func TestRequestsThatAreNoReviewsAreNotRead(t *testing.T) {
	eachProtocol(t, inBubble(func(t *testing.T, http2 bool) {
		server := serve(t, http2, func(http.ResponseWriter, *http.Request) { t.Error("it was judged") })
		// A caller that is refused early may see the connection end before the answer.
		if code := sendBytes(t, server, "", maxBody+1); code != http.StatusRequestEntityTooLarge && code != 0 {
			t.Errorf("one that is too large: %d", code)
		}
		if code := send(t, server, "", io.LimitReader(zeros{}, 1<<30), -1); code != http.StatusLengthRequired && code != 0 {
			t.Errorf("one that does not say how large it is: %d", code)
		}
	}))
}

// zeros has no end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestCallersThatLeaveDoNotEndTheServer has many give up while their reviews arrive: a panic would end this test, and the webhook.
func TestCallersThatLeaveDoNotEndTheServer(t *testing.T) {
	eachProtocol(t, func(t *testing.T, http2 bool) {
		arriving := make(chan struct{}, 200)
		bounds := New(clock.RealClock{}).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			arriving <- struct{}{}
			bounds.ServeHTTP(w, r)
		}))
		server.EnableHTTP2 = http2
		server.StartTLS()
		t.Cleanup(server.Close)
		for range 5 {
			ctx, leave := context.WithCancel(t.Context())
			var left sync.WaitGroup
			for range cap(arriving) {
				left.Go(func() {
					never, writer := io.Pipe()
					defer context.AfterFunc(ctx, func() { _ = writer.Close() })()
					request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, io.MultiReader(strings.NewReader("{"), never))
					if err != nil {
						t.Error(err)
						return
					}
					request.ContentLength = 1000
					if response, err := server.Client().Do(request); err == nil {
						_ = response.Body.Close()
					}
				})
			}
			for range cap(arriving) {
				<-arriving
			}
			leave()
			left.Wait()
		}
	})
}

func TestASlowReviewTakesNoSlot(t *testing.T) {
	eachProtocol(t, inBubble(func(t *testing.T, http2 bool) {
		server := serve(t, http2, func(http.ResponseWriter, *http.Request) {})
		const large = 2 << 20
		codes := make(chan int)
		const slow = 100 // more than are judged at a time
		for range slow {
			never, writer := io.Pipe()
			t.Cleanup(func() { _ = writer.Close() })
			go func() { codes <- send(t, server, "?timeout=10s", io.MultiReader(strings.NewReader("{"), never), large) }()
		}
		synctest.Wait()
		began := time.Now()
		if code := sendBytes(t, server, "", large); code != http.StatusOK || time.Since(began) > 0 {
			t.Errorf("another large one: %d, after it waited for %s", code, time.Since(began))
		}
		for range slow {
			if code := <-codes; code != http.StatusRequestTimeout && code != 0 {
				t.Errorf("a slow one: %d", code)
			}
		}
	}))
}

// waiting serves a handler that blocks until leave is closed; inside receives a value for each review in it.
func waiting(t *testing.T, http2 bool) (server *httptest.Server, inside chan struct{}, leave chan struct{}) {
	t.Helper()
	inside, leave = make(chan struct{}, 1000), make(chan struct{})
	return serve(t, http2, func(http.ResponseWriter, *http.Request) {
		inside <- struct{}{}
		<-leave
	}), inside, leave
}

// of is a review of a namespace that has n bytes.
func of(namespace string, n int) []byte {
	head := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1","kind":{"group":"g","version":"v1"},` +
		`"resource":{"x":["}",{"namespace":"not this"}]},"namespace":"` + namespace + `","object":"`
	return []byte(head + strings.Repeat("x", max(0, n-len(head)-3)) + `"}}`)
}

func TestOneNamespaceLeavesSlotsForOthers(t *testing.T) {
	eachProtocol(t, inBubble(func(t *testing.T, http2 bool) {
		server, inside, leave := waiting(t, http2)
		const size = 512 << 10
		post := func(namespace, query string) int {
			body := of(namespace, size)
			return send(t, server, query, bytes.NewReader(body), int64(len(body)))
		}
		codes := make(chan int)
		for range 4 {
			go func() { codes <- post("loud", "?timeout=10s") }()
			<-inside
		}
		if code := post("loud", "?timeout=2s"); code != http.StatusServiceUnavailable {
			t.Errorf("one more of the namespace: %d", code)
		}
		go func() { codes <- post("calm", "?timeout=10s") }()
		<-inside
		close(leave)
		for range 5 {
			if code := <-codes; code != http.StatusOK {
				t.Errorf("one of those inside: %d", code)
			}
		}
	}))
}

func TestLargeReviewsWaitForLargeOnesOnly(t *testing.T) {
	synctest.Test(t, testLargeReviews)
}

func testLargeReviews(t *testing.T) {
	server, inside, leave := waiting(t, true)
	done := make(chan int)
	post := func(namespace string) {
		body := of(namespace, 2<<20)
		done <- send(t, server, "?timeout=10s", bytes.NewReader(body), int64(len(body)))
	}
	for _, namespace := range []string{"a", "b", "c"} { // three of four are what one address has at most
		go post(namespace)
		<-inside
	}
	body := of("d", 2<<20)
	if code := send(t, server, "?timeout=200ms", bytes.NewReader(body), int64(len(body))); code != http.StatusServiceUnavailable {
		t.Errorf("one more large review: %d", code)
	}
	go func() { done <- sendBytes(t, server, "", 10) }()
	<-inside
	close(leave)
	for range 4 {
		if code := <-done; code != http.StatusOK {
			t.Errorf("one of those inside: %d", code)
		}
	}
}

func TestHowLongAReviewMayTake(t *testing.T) {
	for query, want := range map[string]time.Duration{
		"":               4500 * time.Millisecond,
		"?timeout=x":     4500 * time.Millisecond,
		"?timeout=-1s":   4500 * time.Millisecond,
		"?timeout=10s":   9500 * time.Millisecond,
		"?timeout=1s":    500 * time.Millisecond,
		"?timeout=600ms": 300 * time.Millisecond,
		"?timeout=24h":   9500 * time.Millisecond,
	} {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/"+query, nil)
		if got := timeoutFor(r); got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
}

func TestTheNamespaceOfAReviewIsFound(t *testing.T) {
	for body, want := range map[string]string{
		string(of("shop", 0)):                         "shop",
		string(of("shop", 1e6)):                       "shop",
		`{"request":{"uid":"1"}`:                      "",
		`{"request":{"namespace":{"namespace":"x"}}}`: "",
		`{"object":{"request":{"namespace":"x"}}}`:    "",
		`[]`: "", `{`: "", ``: "", `{"request":{"a":null,"namespace":"x"}}`: "",
		`{"` + strings.Repeat("x", namespaceWithin) + `":1,"request":{"namespace":"x"}}`: "",
	} {
		if got := namespaceOf([]byte(body)); got != want {
			t.Errorf("%.80s: %q, want %q", body, got, want)
		}
	}
}

func FuzzTheNamespaceOfAReview(f *testing.F) {
	f.Add(of("shop", 0))
	f.Fuzz(func(_ *testing.T, body []byte) { namespaceOf(body) })
}
