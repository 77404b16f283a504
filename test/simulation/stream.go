// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// stream is a watch under way.
type stream struct {
	host, process string
	end           func()
}

// expired is the event of a watch that cannot continue.
const expired = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}` + "\n"

// watch begins a watch. It lasts until the client or the network ends it, or the process dies.
func (c *Client) watch(handler http.Handler, r, in *http.Request, cancel context.CancelCauseFunc) (*http.Response, error) {
	ctx, host := in.Context(), r.URL.Host
	leave := context.AfterFunc(c.ctx, func() { cancel(errKilled) })
	if w, ok := c.fault(host, r.URL.Path, c.process, Hang, Refuse, Status, ExpireWatches); ok {
		if w.Kind != ExpireWatches || r.URL.Query().Get("resourceVersion") != "" {
			defer cancel(nil)
			defer leave()
			return c.noWatch(ctx, r, w)
		}
	}
	a := newAnswer()
	a.read, a.write = io.Pipe()
	name := "watch " + c.process + " " + host + r.URL.RequestURI() + r.Header.Get("Accept")
	a.before = func(events []byte) {
		c.hold(ctx, r)
		c.delay(ctx, name, mostWatchDelay)
		c.history.events(c.process, r, events)
		c.delivered(c.process, r.URL.Path, events)
	}
	stop := context.AfterFunc(ctx, func() { a.write.CloseWithError(io.EOF) })
	s := &stream{host: host, process: c.process, end: func() { cancel(io.ErrUnexpectedEOF) }}
	c.Network.mu.Lock()
	c.streams[s] = true
	c.Network.mu.Unlock()
	over := make(chan struct{})
	go func() {
		select {
		case <-c.died:
			cancel(errKilled)
		case <-over:
		}
	}()
	go func() {
		defer leave()
		defer stop()
		defer close(over)
		handler.ServeHTTP(a, in)
		c.Network.mu.Lock()
		delete(c.streams, s)
		c.Network.mu.Unlock()
		a.begin()
		a.write.CloseWithError(io.EOF)
		cancel(nil)
	}()
	select {
	case <-a.ready:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	c.history.answer(c.process, r, &http.Response{StatusCode: a.status}, nil)
	return a.response(r, &body{a.read, func() { cancel(context.Canceled) }}), nil
}

// noWatch is what a watch gets that meets a fault at once.
func (c *Client) noWatch(ctx context.Context, r *http.Request, w window) (*http.Response, error) {
	switch w.Kind {
	case Status:
		return refusal(r, w.Status), nil
	case ExpireWatches:
		a := newAnswer()
		a.header.Set("Content-Type", "application/json")
		a.begin()
		a.buffer.WriteString(expired)
		return a.response(r, io.NopCloser(&a.buffer)), nil
	case Hang:
		pause(ctx, time.Until(w.to))
	}
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	return nil, errRefused
}

// hold delays watch events while the host hangs or is late, or the process stands still.
func (c *Client) hold(ctx context.Context, r *http.Request) {
	if w, ok := c.fault(r.URL.Host, r.URL.Path, c.process, LateWatches); ok {
		pause(ctx, w.Delay)
	}
	c.stand(r)
	for ctx.Err() == nil {
		w, ok := c.fault(r.URL.Host, r.URL.Path, c.process, Hang)
		if !ok || w.Percent > 0 {
			return
		}
		pause(ctx, time.Until(w.to))
	}
}

// body is that of a watch.
type body struct {
	io.Reader
	end func()
}

func (b *body) Close() error {
	b.end()
	return nil
}

// answer is an http.ResponseWriter that keeps the answer, or passes it on as it is written.
type answer struct {
	header http.Header
	status int
	once   sync.Once
	ready  chan struct{} // closed when there is a status
	buffer bytes.Buffer

	read   *io.PipeReader
	write  *io.PipeWriter
	before func([]byte)
}

func newAnswer() *answer { return &answer{header: http.Header{}, ready: make(chan struct{})} }

// Header is http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader is http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	a.once.Do(func() { a.status = status; close(a.ready) })
}

func (a *answer) begin() { a.WriteHeader(http.StatusOK) }

// Flush is http.Flusher.
func (a *answer) Flush() { a.begin() }

// Write is http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.begin()
	if a.write == nil {
		return a.buffer.Write(p)
	}
	if len(p) == 0 {
		return 0, nil
	}
	a.before(p)
	return a.write.Write(p)
}

func (a *answer) response(r *http.Request, from io.ReadCloser) *http.Response {
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header.Clone(), Body: from, ContentLength: -1, Request: r,
	}
}
