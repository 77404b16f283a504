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

// When the reconciler is killed.
type death int

const (
	// spared: never.
	spared death = iota
	// unanswered: after the API server has done the write, before the reconciler reads the response.
	unanswered
	// answered: at the write after the response was read; that write never reaches the API server.
	answered
)

// errDead is the error of every request of a killed reconciler.
var errDead = errors.New("the client was killed")

// lifeKey is the context key for the run of the reconciler that a connection belongs to.
type lifeKey struct{}

// gate serialises all writes of the reconciler to all clusters. In a run that is to be killed, exactly stride writes get
// through.
type gate struct {
	mu     sync.Mutex
	how    death
	life   int
	wrote  int // in this life
	dead   bool
	kill   func() // kills the process and returns when it has exited
	writes []string
	lives  int // runs that were killed
}

// begin starts a run, which kill ends. No other may be in progress.
func (g *gate) begin(kill func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wrote, g.dead, g.kill = 0, false, kill
}

// end ends a run: requests that it still sends are refused from now on.
func (g *gate) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.life++
	g.dead = true
}

// decide sets how runs end from the next write on.
func (g *gate) decide(how death) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.how, g.wrote = how, 0
}

// count returns the writes and the number of killed runs since the last call.
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

// pass forwards a write. Writes are serialised, so that a run cannot make two.
func (g *gate) pass(life any, what string, send func() (*http.Response, error)) (*http.Response, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dead || life != g.life {
		return nil, errDead
	}
	if g.how == answered && g.wrote >= stride() {
		return nil, g.die()
	}
	response, err := send()
	if err != nil || response.StatusCode >= 300 {
		return response, err // nothing was written
	}
	g.writes = append(g.writes, time.Now().Format("15:04:05.000 ")+what)
	g.wrote++
	if g.how == unanswered && g.wrote >= stride() {
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

// proxy is a proxy between the reconciler and one API server.
type proxy struct {
	*httptest.Server

	name string
	gate *gate
	next http.RoundTripper
}

// newProxy starts a proxy to the API server of config. It uses the certificate authority of config but not the credentials:
// every request carries its own.
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
			panic(http.ErrAbortHandler) // closes the connection without a response
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

// RoundTrip forwards a request.
func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	if !writes(r) {
		return p.next.RoundTrip(r)
	}
	what := fmt.Sprintf("%s %s %s", p.name, r.Method, r.URL.Path)
	return p.gate.pass(r.Context().Value(lifeKey{}), what, func() (*http.Response, error) { return p.next.RoundTrip(r) })
}

// writes reports whether a request is a relevant write: those of Leases, Events and access reviews are not.
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
