// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// slowClients are callers of the webhook's port who send the first byte of a large review, and no other.
type slowClients struct {
	hold, opened atomic.Int64
	ended        sync.WaitGroup
}

// attack opens connections from each address, and opens others where the webhook closes them, until the test ends.
func (s *slowClients) attack(t *testing.T, connections int, addresses ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		s.ended.Wait()
	})
	sessions := tls.NewLRUClientSessionCache(connections)
	for i := range connections {
		address := addresses[i%len(addresses)]
		dialer := &tls.Dialer{
			NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}},
			//nolint:gosec // an attacker does not care whom he talks to
			Config: &tls.Config{InsecureSkipVerify: true, ClientSessionCache: sessions},
		}
		s.ended.Go(func() {
			for ctx.Err() == nil {
				s.send(ctx, dialer)
			}
		})
	}
}

// send opens one connection, and keeps it until it is closed.
func (s *slowClients) send(ctx context.Context, dialer *tls.Dialer) {
	conn, err := dialer.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", gate.port))
	if err != nil {
		return
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer conn.Close()
	_, err = io.WriteString(conn, "POST /mutate-application?timeout=30s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+
		"Content-Length: 1000000\r\n\r\n{")
	if err != nil {
		return
	}
	s.opened.Add(1)
	s.hold.Add(1)
	defer s.hold.Add(-1)
	_, _ = io.Copy(io.Discard, conn)
}

// writes are how long small and large changes of an Application take, the longest of some.
func writes(t *testing.T, u *user, app *shipper.Application, n int) (longest time.Duration) {
	t.Helper()
	large := strings.Repeat("x", 200<<10)
	for i := range n {
		body := fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d"}}}`, i)
		if i%2 == 1 {
			body = fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d%s"}}}`, i, large)
		}
		began := time.Now()
		if err := u.Patch(t.Context(), copyOf(app), client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
			t.Errorf("a write: %v", err)
		}
		longest = max(longest, time.Since(began))
	}
	return longest
}

// TestSlowClientsHoldUpNobody has 1,000 connections send one byte each, from the address of the API server and from others. What writes
// take is compared with what they take without: a busy machine is not to fail it.
func TestSlowClientsHoldUpNobody(t *testing.T) {
	ns := namespace(t)
	r := rollOut(t, ns)
	u := as(t, "dev")
	writes(t, u, r.app, 4) // what is asked for first is remembered
	before := writes(t, u, r.app, 20)
	slow := &slowClients{}
	slow.attack(t, 1000, "127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.3")
	eventually(t, "1,000 slow connections", func(context.Context) error {
		if n := slow.opened.Load(); n < 1000 {
			return fmt.Errorf("%d connections of 1,000", n)
		}
		return nil
	})
	during := writes(t, u, r.app, 20)
	t.Logf("the longest write took %s before and %s beside 1,000 slow connections (%d at its end)", before, during, slow.hold.Load())
	if during > max(250*time.Millisecond, 8*before) {
		t.Errorf("a write took %s, and %s before", during, before)
	}
	if n := slow.hold.Load(); n < 300 {
		t.Errorf("%d connections were left: the attack was none", n)
	}
}
