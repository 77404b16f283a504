// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"shipper.dev/shipper/webhook/bounds"
)

const (
	// headersWithin is how long a TLS handshake may take, and then the headers of a request.
	headersWithin = 5 * time.Second
	// maxHeaders is more than an API server sends, with the names of a trace.
	maxHeaders = 16 << 10
	// idleFor is how long a connection is kept for nothing: as long as API servers keep theirs.
	idleFor = 90 * time.Second
)

// server is controller-runtime's admission server, but for how it listens: that one takes no bounds of connections.
type server struct {
	ctrlwebhook.Server

	address   string
	configure []func(*tls.Config)
	listening atomic.Bool
}

func newServer(address string, configure ...func(*tls.Config)) *server {
	return &server{Server: ctrlwebhook.NewServer(ctrlwebhook.Options{}), address: address, configure: configure}
}

// Start serves until ctx is done and what is on its way is answered.
func (s *server) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("listening for reviews: %w", err)
	}
	return s.serve(ctx, listener)
}

func (s *server) serve(ctx context.Context, listener net.Listener) error {
	config := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}}
	for _, configure := range s.configure {
		configure(config)
	}
	answering := context.WithoutCancel(ctx) // a review that is under way at shutdown is still answered
	web := &http.Server{
		Handler: s.WebhookMux(), BaseContext: func(net.Listener) context.Context { return answering },
		ReadHeaderTimeout: headersWithin, MaxHeaderBytes: maxHeaders, IdleTimeout: idleFor,
	}
	bounds.NewConnections(clock.RealClock{}).Bound(web)
	s.listening.Store(true)
	defer s.listening.Store(false)
	return (&manager.Server{
		Name: "admission", Server: web, Listener: tls.NewListener(listener, config), ShutdownTimeout: ptr.To(drainTimeout),
	}).Start(ctx)
}

// StartedChecker fails unless the server listens.
func (s *server) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		if !s.listening.Load() {
			return errors.New("the admission server does not listen")
		}
		return nil
	}
}
