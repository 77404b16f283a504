// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
)

// drainTimeout bounds the wait for requests in progress after the server stops accepting: longer than any may take.
const drainTimeout = 10 * time.Second

// drainingServer is the admission server with a shutdown that fails no request. In this order:
//
//  1. /readyz fails, and the Service sends no new connections here.
//  2. Halfway through the delay every answer closes its connection (GOAWAY). An API server keeps one connection for
//     long; it opens another, which by then leads to another replica.
//  3. After the delay the server stops accepting, and answers the requests in progress.
//  4. Only then the watches end, so that the last answer has current caches.
type drainingServer struct {
	ctrlwebhook.Server

	notReady, goAway atomic.Bool
	started          atomic.Bool
	serving          context.Context //nolint:containedctx // the server's, which must outlive that of the manager
	stop             context.CancelFunc
	closed           chan struct{} // closed when all requests are answered
}

func newDrainingServer(ctx context.Context, server ctrlwebhook.Server) *drainingServer {
	d := &drainingServer{Server: server, closed: make(chan struct{})}
	d.serving, d.stop = context.WithCancel(ctx)
	return d
}

// drain runs all steps but the last; it takes delay.
func (d *drainingServer) drain(c clock.Clock, delay time.Duration) {
	d.notReady.Store(true)
	c.Sleep(delay / 2)
	d.goAway.Store(true)
	c.Sleep(delay - delay/2)
	d.stop()
	if !d.started.Load() {
		return
	}
	select {
	case <-d.closed:
	case <-c.After(drainTimeout):
	}
}

// Start serves until the server is drained, or the manager has failed.
func (d *drainingServer) Start(ctx context.Context) error {
	defer close(d.closed)
	defer context.AfterFunc(ctx, d.stop)()
	d.started.Store(true)
	return d.Server.Start(d.serving)
}

// Register makes every answer close its connection once goAway is set.
func (d *drainingServer) Register(path string, hook http.Handler) {
	d.Server.Register(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.goAway.Load() {
			w.Header().Set("Connection", "close") // with HTTP/2, this sends GOAWAY
		}
		hook.ServeHTTP(w, r)
	}))
}

// ready is an error once the server drains.
func (d *drainingServer) ready(*http.Request) error {
	if d.notReady.Load() {
		return errors.New("shutting down")
	}
	return nil
}
