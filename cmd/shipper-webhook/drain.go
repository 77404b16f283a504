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

// drainTimeout bounds how long is waited for requests on their way once no more are taken: longer than any may take.
const drainTimeout = 10 * time.Second

// drainingServer is the admission server, and how it is left so that nobody stands before a closed one. In this order:
//
//  1. /readyz says no, and the Service sends no new connections here.
//  2. Halfway through the delay every answer asks its connection to go (GOAWAY). An API server keeps one connection for
//     long; it opens another, which leads to another replica by then.
//  3. After the delay nothing more is taken, and what is on its way is answered.
//  4. Only then watches end: the last answer is as informed as the first.
type drainingServer struct {
	ctrlwebhook.Server

	notReady, goAway atomic.Bool
	started          atomic.Bool
	serving          context.Context //nolint:containedctx // the server's, which must outlive that of the manager
	stop             context.CancelFunc
	closed           chan struct{} // closed when all is answered
}

func newDrainingServer(ctx context.Context, server ctrlwebhook.Server) *drainingServer {
	d := &drainingServer{Server: server, closed: make(chan struct{})}
	d.serving, d.stop = context.WithCancel(ctx)
	return d
}

// drain takes the time of all steps but the last.
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

// Start serves until the door is shut, or the manager has failed.
func (d *drainingServer) Start(ctx context.Context) error {
	defer close(d.closed)
	defer context.AfterFunc(ctx, d.stop)()
	d.started.Store(true)
	return d.Server.Start(d.serving)
}

// Register has every answer turn its connection away when it is time to.
func (d *drainingServer) Register(path string, hook http.Handler) {
	d.Server.Register(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.goAway.Load() {
			w.Header().Set("Connection", "close") // with HTTP/2, this sends GOAWAY
		}
		hook.ServeHTTP(w, r)
	}))
}

// ready is an error once this is about to leave.
func (d *drainingServer) ready(*http.Request) error {
	if d.notReady.Load() {
		return errors.New("shutting down")
	}
	return nil
}
