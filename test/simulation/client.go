// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Client is the connections of one life of a process. It is an http.RoundTripper.
type Client struct {
	*Network
	process string
	ctx     context.Context // done when the process is killed
	cancel  context.CancelFunc
	started chan struct{} // closed when the caches are filled
	died    chan struct{} // closed a moment before ctx is done
	over    chan struct{} // closed when the process has ended

	mu    sync.Mutex
	dying bool // with its next write
	dead  bool
}

func (n *Network) newClient(ctx context.Context, process string) *Client {
	ctx, cancel := context.WithCancel(ctx)
	return &Client{Network: n, process: process, ctx: ctx, cancel: cancel,
		started: make(chan struct{}), died: make(chan struct{}), over: make(chan struct{})}
}

// kill ends the life, once its caches are filled: a manager whose context ends before spins for ever, and virtual time stands still.
func (c *Client) kill() {
	select {
	case <-c.started:
		c.end()
		return
	default:
	}
	go func() {
		select {
		case <-c.started:
			c.end()
		case <-c.over:
		}
	}()
}

// end ends the life at once. Its watches end a moment earlier than the rest: a filtered watch that is stopped while it has an event to
// deliver would block for ever.
func (c *Client) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.die()
}

// die is end with the mutex held.
func (c *Client) die() {
	if c.dead {
		return
	}
	c.dead = true
	close(c.died)
	time.AfterFunc(1, c.cancel)
}

func (c *Client) isDead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// CloseIdleConnections does nothing: there are none.
func (c *Client) CloseIdleConnections() {}

// RoundTrip sends a request and waits for the answer.
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		defer r.Body.Close()
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	if c.isDead() {
		return nil, errKilled
	}
	if isDiscovery(r) {
		return c.discover(r)
	}
	if held := c.stand(r); held && r.Method != http.MethodGet {
		return nil, errReset
	}
	c.Network.mu.Lock()
	handler, holder := c.hosts[r.URL.Host], c.leader
	c.Network.mu.Unlock()
	if handler == nil {
		return nil, fmt.Errorf("%s: %w", r.URL.Host, errRefused)
	}
	s := &sent{client: c, at: time.Now(), held: holder}
	ctx, cancel := context.WithCancelCause(context.WithValue(r.Context(), sentKey{}, s))
	in := r.Clone(ctx)
	in.Body, in.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if r.URL.Query().Has("watch") {
		return c.watch(handler, r, in, cancel)
	}
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(errKilled) })()
	response, err := c.ask(handler, in)
	if c.stand(r); c.isDead() {
		return nil, errKilled
	}
	if cause := context.Cause(ctx); cause != nil {
		response, err = nil, cause
	}
	c.history.answer(c.process, r, response, err)
	c.answered(c, s, r, body, response)
	if response != nil {
		response.Request = r
	}
	return response, err
}

// isDiscovery reports whether a request asks which kinds there are.
func isDiscovery(r *http.Request) bool {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch parts[0] {
	case "api":
		return len(parts) <= 2
	case "apis":
		return len(parts) <= 3
	}
	return parts[0] == "version" || parts[0] == "openapi"
}

// discover asks which kinds there are, in no time: the client's RESTMapper holds a mutex meanwhile, and while others wait for a mutex no
// virtual time passes.
func (c *Client) discover(r *http.Request) (*http.Response, error) {
	c.Network.mu.Lock()
	handler := c.hosts[r.URL.Host]
	c.Network.mu.Unlock()
	w, ok := c.fault(r.URL.Host, r.URL.Path, c.process, Hang, Refuse, Status)
	switch {
	case handler == nil, ok && w.Kind != Status:
		return nil, errRefused
	case ok:
		return refusal(r, w.Status), nil
	}
	a := newAnswer()
	handler.ServeHTTP(a, r)
	a.begin()
	return a.response(r, io.NopCloser(&a.buffer)), nil
}

// ask sends a request that is no watch.
func (c *Client) ask(handler http.Handler, r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	lost := false
	if w, ok := c.fault(r.URL.Host, r.URL.Path, c.process, Hang, Refuse, Status, Slow, LoseAnswers); ok {
		switch w.Kind {
		case Hang:
			pause(ctx, time.Until(w.to))
			return nil, errReset
		case Refuse:
			return nil, errRefused
		case Status:
			return refusal(r, w.Status), nil
		case Slow:
			pause(ctx, w.Delay)
		case LoseAnswers:
			lost = true
		}
	}
	c.delay(ctx, c.process+" "+r.Method+" "+r.URL.Host+r.URL.Path, mostDelay)
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	a := newAnswer()
	handler.ServeHTTP(a, r) // by the goroutine that asks
	a.begin()
	if lost {
		return nil, errReset
	}
	return a.response(r, io.NopCloser(&a.buffer)), nil
}

// refusal is an answer of an API server in trouble.
func refusal(r *http.Request, status int) *http.Response {
	a := newAnswer()
	a.header.Set("Content-Type", "application/json")
	a.WriteHeader(status)
	reason := map[int]string{http.StatusConflict: "Conflict", http.StatusTooManyRequests: "TooManyRequests", http.StatusForbidden: "Forbidden"}
	_ = json.NewEncoder(&a.buffer).Encode(map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "a fault of the simulation", "reason": reason[status],
		"code": status,
	})
	return a.response(r, io.NopCloser(&a.buffer))
}

// stand waits while the process stands still, and reports whether it did. It ends with the life of the process, and not with the request.
func (c *Client) stand(r *http.Request) (stood bool) {
	for !c.isDead() {
		w, ok := c.fault("", "", c.process, StandStill)
		if !ok {
			break
		}
		stood = true
		pause(c.ctx, time.Until(w.to))
	}
	if stood && strings.Contains(r.URL.Path, "/leases") {
		pause(c.ctx, renewedLast)
	}
	return stood
}
