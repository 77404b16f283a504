// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// door is in front of an API server: what it does with requests may be changed.
type door struct {
	next http.Handler

	mu sync.Mutex
	// fill has the requests that fill the cache of Pods, beat the heartbeats. Without them, requests pass.
	fill, beat http.HandlerFunc
	// write has all writes.
	write http.HandlerFunc
	// hush holds back what is being answered, until it is closed. Nil: nothing is held back.
	hush chan struct{}
}

// muffled is an answer that the door may hold back, a watch's too.
type muffled struct {
	http.ResponseWriter

	door *door
	end  <-chan struct{} // of the request
}

// Write writes when the door is open.
func (m muffled) Write(b []byte) (int, error) {
	m.door.mu.Lock()
	hush := m.door.hush
	m.door.mu.Unlock()
	if hush != nil {
		select {
		case <-hush:
		case <-m.end:
		}
	}
	return m.ResponseWriter.Write(b)
}

// Unwrap lets what is written be flushed.
func (m muffled) Unwrap() http.ResponseWriter { return m.ResponseWriter }

// ServeHTTP passes a request on, unless the door is set otherwise.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	fill, beat, write := d.fill, d.beat, d.write
	d.mu.Unlock()
	fills := r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/pods") && r.URL.Query().Get("limit") != "1"
	switch {
	case fills && fill != nil:
		fill(w, r)
	case strings.Contains(r.URL.Path, "/leases/") && beat != nil:
		beat(w, r)
	case write != nil && (r.Method == http.MethodPatch || r.Method == http.MethodPost):
		write(w, r)
	default:
		d.next.ServeHTTP(muffled{w, d, r.Context().Done()}, r)
	}
}

// set says what happens from now on.
func (d *door) set(fill, beat http.HandlerFunc) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fill, d.beat = fill, beat
	if d.hush != nil {
		close(d.hush)
		d.hush = nil
	}
}

// shut lets nothing out any more, until it is set otherwise: of what others do in the cluster, too, nothing comes.
func (d *door) shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fill, d.beat, d.hush = freeze, freeze, make(chan struct{})
}

// setWrites says what happens to writes from now on.
func (d *door) setWrites(write http.HandlerFunc) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.write = write
}

// behind makes a cluster that is really west, behind a door, and returns its Secret.
func (s *fixture) behind(d *door, name string) *corev1.Secret {
	s.Helper()
	server, err := inFrontOf(world.access[west], func(next http.Handler) http.Handler {
		d.next = next
		return d
	})
	s.must(err)
	s.Cleanup(server.CloseClientConnections)
	secret := clusterSecret(name, west)
	secret.Data["ca.crt"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	s.lend(secret)
	c := aCluster(name, west)
	c.Spec.APIMaster = server.URL
	s.lend(c)
	return secret
}

// freeze answers nothing.
func freeze(_ http.ResponseWriter, r *http.Request) {
	<-r.Context().Done()
}

// TestAClusterThatFreezesWhileItsCachesFillIsNamed connects again with other credentials, so that what was said of the
// cluster stands until the attempt has an end.
func TestAClusterThatFreezesWhileItsCachesFillIsNamed(t *testing.T) {
	s := begin(t, west)
	d := &door{}
	secret := s.behind(d, "freezing")
	s.clusterIs("freezing", "")
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, "freezing")
	s.installed("web-1")
	frozen, tell := context.WithCancel(s.ctx)
	d.set(func(w http.ResponseWriter, r *http.Request) {
		d.shut()
		tell()
		freeze(w, r)
	}, nil)
	s.change(secret, func(client.Object) { secret.Data["ca.crt"] = append(secret.Data["ca.crt"], '\n') })
	<-frozen.Done()
	began := time.Now()
	s.clusterIs("freezing", shipper.ClusterUnreachable)
	s.notInstalled("web-1", "freezing", shipper.ClusterUnreachable)
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it was named after %s", took)
	}
	d.set(nil, nil)
	it := s.installed("web-1")
	s.must(s.management.Delete(s.ctx, it))
	s.gone(it)
}

// TestAClusterThatFillsSlowlyIsNotGivenUp lets Pods come byte by byte for longer than two heartbeats may take, and
// heartbeats not at all meanwhile.
func TestAClusterThatFillsSlowlyIsNotGivenUp(t *testing.T) {
	s := begin(t, west)
	for i := range 3 {
		pod := &corev1.Pod{ObjectMeta: s.meta(fmt.Sprint("web-", i))}
		pod.Spec.Containers = []corev1.Container{{Name: "a", Image: "a"}}
		s.must(world.clusters[west].Create(s.ctx, pod))
	}
	d := &door{}
	var attempts, beats atomic.Int32
	d.set(func(w http.ResponseWriter, r *http.Request) {
		attempts.Add(1)
		r.Header.Del("Accept-Encoding") // of what is packed, single bytes cannot be read
		d.next.ServeHTTP(&thinLine{ResponseWriter: w, ctx: r.Context(), widen: func() { d.set(nil, nil) }}, r)
	}, func(w http.ResponseWriter, r *http.Request) {
		if beats.Add(1) > 1 { // the first is that before anything is read
			freeze(w, r)
		}
		d.next.ServeHTTP(w, r)
	})
	s.behind(d, "slow")
	s.clusterIs("slow", "")
	if n := attempts.Load(); n != 1 {
		t.Errorf("it was connected to after %d attempts", n)
	}
	if n := beats.Load(); n < 3 {
		t.Errorf("no heartbeat was missed: %d were begun", n)
	}
}

// thinLine carries the first bytes one by one.
type thinLine struct {
	http.ResponseWriter

	ctx   context.Context
	sent  int
	widen func() // called when the rest may go as it comes
}

// Write sends ten bytes a second, for five seconds.
func (l *thinLine) Write(p []byte) (int, error) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i := range p {
		if l.sent++; l.sent == 50 {
			l.widen()
		}
		if l.sent >= 50 {
			n, err := l.ResponseWriter.Write(p[i:])
			return i + n, err
		}
		select {
		case <-l.ctx.Done():
			return i, l.ctx.Err()
		case <-tick.C:
		}
		if _, err := l.ResponseWriter.Write(p[i : i+1]); err != nil {
			return i, err
		}
		if err := http.NewResponseController(l.ResponseWriter).Flush(); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

// Unwrap lets what comes be flushed.
func (l *thinLine) Unwrap() http.ResponseWriter {
	return l.ResponseWriter
}
