// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// How the reconciler dies.
type death int

const (
	// spared lets it live.
	spared death = iota
	// unanswered kills it when the API server has done the write, before it reads the answer.
	unanswered
	// answered lets it read the answer, and kills it when it wants to write again: that write never arrives.
	answered
)

// errDead is the end of every request of a reconciler that was killed.
var errDead = errors.New("who asked is dead")

// lifeKey is the key of the life a connection belongs to, in the contexts of its requests.
type lifeKey struct{}

// gate is what all writes of the reconciler pass, whatever cluster they are for. In a life that is not spared exactly one
// write gets through.
type gate struct {
	mu     sync.Mutex
	how    death
	life   int
	wrote  bool
	dead   bool
	kill   func() // ends the process and returns when it has ended
	writes []string
	lives  int // that were ended
}

// begin starts a life that kill ends. No life may be running.
func (g *gate) begin(kill func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wrote, g.dead, g.kill = false, false, kill
}

// end is the end of a life: what it has still sent is refused from now on.
func (g *gate) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.life++
	g.dead = true
}

// decide says how lives end from the next write on.
func (g *gate) decide(how death) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.how, g.wrote = how, false
}

// count reports how many writes there were, how many lives were ended, and forgets both.
func (g *gate) count() (writes []string, lives int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	writes, lives = g.writes, g.lives
	g.writes, g.lives = nil, 0
	return writes, lives
}

// total is the number of writes so far.
func (g *gate) total() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.writes)
}

// pass sends a write on. Writes pass one after the other, so that a life cannot do two.
func (g *gate) pass(life any, what string, send func() (*http.Response, error)) (*http.Response, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dead || life != g.life {
		return nil, errDead
	}
	if g.how == answered && g.wrote {
		return nil, g.die()
	}
	response, err := send()
	if err != nil || response.StatusCode >= 300 {
		return response, err // nothing was written
	}
	g.writes = append(g.writes, time.Now().Format("15:04:05.000 ")+what)
	g.wrote = true
	if g.how == unanswered {
		_ = response.Body.Close()
		return nil, g.die()
	}
	return response, nil
}

// die kills the reconciler.
func (g *gate) die() error {
	g.dead = true
	g.lives++
	g.kill()
	return errDead
}

// proxy stands between the reconciler and one API server.
type proxy struct {
	*httptest.Server

	name string
	gate *gate
	next http.RoundTripper
}

// newProxy starts a proxy to the API server of config, whose certificate authority is used and whose credentials are
// not: every request carries its own.
func newProxy(name string, config *rest.Config, g *gate) (*proxy, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("the address of %s: %w", name, err)
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("reading the certificates of %s: %w", name, err)
	}
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	if err != nil {
		return nil, fmt.Errorf("a way to %s: %w", name, err)
	}
	p := &proxy{name: name, gate: g, next: transport}
	p.Server = httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     p,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler) // no answer, as from a server that is gone
		},
	})
	p.EnableHTTP2 = true
	p.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	p.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		g.mu.Lock()
		defer g.mu.Unlock()
		return context.WithValue(ctx, lifeKey{}, g.life)
	}
	p.StartTLS()
	return p, nil
}

// ca is the certificate that clients of the proxy trust.
func (p *proxy) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw})
}

// RoundTrip sends a request on.
func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	if !writes(r) {
		return p.next.RoundTrip(r)
	}
	what := fmt.Sprintf("%s %s %s", p.name, r.Method, r.URL.Path)
	return p.gate.pass(r.Context().Value(lifeKey{}), what, func() (*http.Response, error) { return p.next.RoundTrip(r) })
}

// writes reports whether a request changes what matters: Leases, Events and questions about rights do not.
func writes(r *http.Request) bool {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return false
	}
	if r.URL.Query().Has("dryRun") {
		return false
	}
	for _, other := range []string{"/coordination.k8s.io/", "/events", "/authorization.k8s.io/", "/authentication.k8s.io/"} {
		if strings.Contains(r.URL.Path, other) {
			return false
		}
	}
	return true
}
