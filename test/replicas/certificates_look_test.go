// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// bundles are the CA bundles of all webhooks, as the API server has them now.
func bundles(ctx context.Context) ([][]byte, error) {
	key := client.ObjectKey{Name: shipper.GroupName}
	var validating admissionv1.ValidatingWebhookConfiguration
	var mutating admissionv1.MutatingWebhookConfiguration
	if err := errors.Join(world.Management.Get(ctx, key, &validating), world.Management.Get(ctx, key, &mutating)); err != nil {
		return nil, err
	}
	var out [][]byte
	for _, w := range validating.Webhooks {
		out = append(out, w.ClientConfig.CABundle)
	}
	for _, w := range mutating.Webhooks {
		out = append(out, w.ClientConfig.CABundle)
	}
	return out, nil
}

// connect does what an API server does that connects to a replica now and trusts bundle.
func connect(ctx context.Context, port int, bundle []byte) (*x509.Certificate, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS12}}
	c, err := dialer.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// lookout connects to all replicas again and again, as an API server would that has just begun.
type lookout struct {
	stop context.CancelFunc
	done sync.WaitGroup

	mu          sync.Mutex
	connections int
	failed      []error
	leaves      []*x509.Certificate // of the first replica, each that differs from the one before
}

func newLookout(ctx context.Context) *lookout {
	l := &lookout{}
	ctx, l.stop = context.WithCancel(ctx)
	l.done.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				l.look(context.WithoutCancel(ctx))
			}
		}
	})
	return l
}

func (l *lookout) look(ctx context.Context) {
	trusted, err := bundles(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failed = append(l.failed, err)
		return
	}
	different := map[string]bool{}
	for _, bundle := range trusted {
		different[string(bundle)] = true
	}
	for i, r := range rotating.replicas {
		for bundle := range different {
			leaf, err := connect(ctx, r.port, []byte(bundle))
			l.connections++
			if err != nil {
				l.failed = append(l.failed, fmt.Errorf("%s replica %d: %w", time.Now().Format("15:04:05.000"), i+1, err))
			} else if i == 0 && (len(l.leaves) == 0 || !leaf.Equal(l.leaves[len(l.leaves)-1])) {
				l.leaves = append(l.leaves, leaf)
			}
		}
	}
}

// served are the certificates that were served so far.
func (l *lookout) served() []*x509.Certificate {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*x509.Certificate(nil), l.leaves...)
}

// end stops looking and fails when any connection did.
func (l *lookout) end(t *testing.T) {
	t.Helper()
	l.stop()
	l.done.Wait()
	for _, err := range l.failed {
		t.Error(err)
	}
	t.Logf("%d connections", l.connections)
}

var sample = regexp.MustCompile(`(?m)^shipper_webhook_certificate_not_after_timestamp_seconds\{certificate="(\w+)"\} (\S+)$`)

// ends are when certificates end, by a replica's metrics.
func (r *rotatingReplica) ends(t *testing.T) map[string]time.Time {
	t.Helper()
	text := r.scrape(t)
	ends := map[string]time.Time{}
	for _, found := range sample.FindAllStringSubmatch(text, -1) {
		seconds, err := strconv.ParseFloat(found[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		ends[found[1]] = time.Unix(int64(seconds), 0).UTC()
	}
	return ends
}

func (r *rotatingReplica) scrape(t *testing.T) string {
	t.Helper()
	response, err := http.Get(r.Webhook.Metrics)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
