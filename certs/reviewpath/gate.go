// SPDX-License-Identifier: Apache-2.0

package reviewpath

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Gate returns a handler that passes requests for hooks with the right token to next, without the token. All others get 404, or 503
// while the configurations cannot be read to compare the token.
func (p *Path) Gate(hooks func(hook string) bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		base, token, hook := Split(r.URL.Path)
		answered, err := false, error(nil)
		if base == "" && hooks(hook) {
			answered, err = p.answered(r.Context(), token)
		}
		if answered {
			inner := *r
			inner.URL = &url.URL{}
			*inner.URL = *r.URL
			inner.URL.Path, inner.URL.RawPath = hook, ""
			next.ServeHTTP(w, &inner)
			return
		}
		// The server waits for no body of a request that is refused. Servers that cannot set a deadline, as in tests, need none.
		_ = http.NewResponseController(w).SetReadDeadline(p.clock.Now())
		if err != nil {
			http.Error(w, "shipper's webhook cannot read its configuration; try again", http.StatusServiceUnavailable)
			return
		}
		http.NotFound(w, r)
	})
}

// readWithin bounds how long a request with an unknown token waits for the API server.
const readWithin = 4 * time.Second

// answered reports whether a token is answered. It reads from the API server before it says no.
func (p *Path) answered(ctx context.Context, token string) (bool, error) {
	if v := p.view.Load(); v != nil && v.has(token, p.clock.Now()) {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	again := p.readAgain()
	select {
	case <-again.done:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if again.err != nil {
		return false, again.err
	}
	return again.view.has(token, p.clock.Now()), nil
}

// reading is one read from the API server, for all requests that wait for it.
type reading struct {
	done chan struct{} // closed when the rest is set
	view *view
	err  error
}

// readEvery is the least time between two such reads.
const readEvery = time.Second

// readAgain returns a read that has not begun yet: one that has may be older than the request.
func (p *Path) readAgain() *reading {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting != nil {
		return p.waiting
	}
	r := &reading{done: make(chan struct{})}
	p.waiting = r
	wait := p.lastRead.Add(readEvery).Sub(p.clock.Now())
	go func() {
		defer close(r.done)
		if wait > 0 {
			<-p.clock.After(wait)
		}
		p.mu.Lock()
		p.waiting, p.lastRead = nil, p.clock.Now()
		p.mu.Unlock()
		ctx, cancel := context.WithTimeout(p.ctx, readWithin)
		defer cancel()
		var s *seen
		if s, r.err = p.observe(ctx, p.api); r.err == nil {
			r.view = p.show(s)
		}
	}()
	return r
}
