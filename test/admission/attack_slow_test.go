// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
)

// pause is the longest wait of a slow client before each of its reviews. The clients' waits are evenly distributed, for a
// flood of handshakes would be another attack.
const pause = 3 * time.Second

// slowClients send the first byte of a large review to the webhook's port, and no other.
type slowClients struct {
	path         string
	hold, opened atomic.Int64
	ended        sync.WaitGroup
}

// attack sends reviews from each address, and replaces those that the webhook ends, until the test ends.
func (s *slowClients) attack(t *testing.T, protocol string, reviews map[string]int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		s.ended.Wait()
	})
	for address, n := range reviews {
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
		//nolint:gosec // an attacker does not verify the server
		config := &tls.Config{InsecureSkipVerify: true, ClientSessionCache: tls.NewLRUClientSessionCache(n)}
		send := map[string]func(context.Context){
			"HTTP/1.1": func(ctx context.Context) { s.connect(ctx, &tls.Dialer{NetDialer: dialer, Config: config}) },
			"HTTP/2":   s.stream(t, &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: config, ForceAttemptHTTP2: true}),
		}[protocol]
		for i := range n {
			s.ended.Go(func() {
				for wait := pause * time.Duration(i) / time.Duration(n); ctx.Err() == nil; {
					select {
					case <-time.After(wait):
						send(ctx)
					case <-ctx.Done():
					}
				}
			})
		}
	}
}

// connect keeps one connection open until the webhook closes it.
func (s *slowClients) connect(ctx context.Context, dialer *tls.Dialer) {
	conn, err := dialer.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", gate.port))
	if err != nil {
		return
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer conn.Close()
	_, err = io.WriteString(conn, "POST "+s.path+" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+
		"Content-Length: 1000000\r\n\r\n{")
	if err != nil {
		return
	}
	s.opened.Add(1)
	s.hold.Add(1)
	defer s.hold.Add(-1)
	_, _ = io.Copy(io.Discard, conn)
}

// stream sends one review over a shared connection, and keeps it open until the webhook ends it.
func (s *slowClients) stream(t *testing.T, transport *http.Transport) func(context.Context) {
	t.Cleanup(transport.CloseIdleConnections)
	url := fmt.Sprintf("https://127.0.0.1:%d%s", gate.port, s.path)
	return func(ctx context.Context) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		more := func() {
			s.opened.Add(1)
			s.hold.Add(1)
			defer s.hold.Add(-1)
			<-ctx.Done()
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, io.MultiReader(strings.NewReader("{"), waiting(more)))
		if err != nil {
			return
		}
		req.ContentLength = 1000000
		if resp, err := transport.RoundTrip(req); err == nil {
			_ = resp.Body.Close()
		}
	}
}

// waiting is a body that ends when the function returns.
type waiting func()

// Read is io.Reader.
func (w waiting) Read([]byte) (int, error) {
	w()
	return 0, io.EOF
}

// writes measures small and large changes of an Application, and returns the median and the longest duration.
func writes(t *testing.T, u *user, app *shipper.Application, n int) (median, longest time.Duration) {
	t.Helper()
	large := strings.Repeat("x", 200<<10)
	var took []time.Duration
	for i := range n {
		body := fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d"}}}`, i)
		if i%2 == 1 {
			body = fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d%s"}}}`, i, large)
		}
		began := time.Now()
		if err := u.Patch(t.Context(), copyOf(app), client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
			t.Errorf("a write: %v", err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[n/2], took[n-1]
}

// TestSlowClientsHoldUpNobody has 1,600 clients send reviews of one byte repeatedly, most from the address of the API server. Every
// write of a user is admitted meanwhile. How long writes take is shown and not judged: webhook/bounds requires in virtual time that they
// wait for no slow review.
func TestSlowClientsHoldUpNobody(t *testing.T) {
	ns := namespace(t)
	r := rollOut(t, ns)
	u := as(t, "dev")
	writes(t, u, r.app, 4) // fills caches
	usual, longest := writes(t, u, r.app, 20)
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2"} {
		t.Run(protocol, func(t *testing.T) {
			slow := &slowClients{path: secretPath(t, "/mutate-application?timeout=30s")}
			slow.attack(t, protocol, map[string]int{"127.0.0.1": 1000, "127.0.0.2": 300, "127.0.0.3": 300})
			env.Eventually(t, "1,600 slow reviews", func(context.Context) error {
				if n := slow.opened.Load(); n < 1600 {
					return fmt.Errorf("%d reviews of 1,600", n)
				}
				return nil
			})
			median, worst := writes(t, u, r.app, 20)
			t.Logf("a write took %s, and %s at most, before; %s, and %s at most, beside slow reviews (%d at the end)",
				usual, longest, median, worst, slow.hold.Load())
			if n := slow.hold.Load(); n < 300 {
				t.Errorf("%d reviews were left: the attack did not happen", n)
			}
		})
	}
}
