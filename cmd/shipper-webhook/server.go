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
	// headersWithin bounds the time of a TLS handshake, and then of the headers of a request.
	headersWithin = 5 * time.Second
	// maxHeaders is more than an API server sends, including those of a trace.
	maxHeaders = 16 << 10
	// idleFor is how long an idle connection is kept: as long as API servers keep theirs.
	idleFor = 90 * time.Second
)

// server is controller-runtime's admission server with its own listener, because that one cannot bound connections.
type server struct {
	ctrlwebhook.Server

	address   string
	configure []func(*tls.Config)
	// gate, unless nil, decides by its path whether a request is for a webhook.
	gate      func(isHook func(path string) bool, next http.Handler) http.Handler
	hooks     map[string]bool
	listening atomic.Bool
}

func newServer(address string, configure ...func(*tls.Config)) *server {
	return &server{
		Server: ctrlwebhook.NewServer(ctrlwebhook.Options{}), address: address, configure: configure, hooks: map[string]bool{},
	}
}

// Register notes which paths have webhooks. It must not be called once the server runs.
func (s *server) Register(path string, hook http.Handler) {
	s.hooks[path] = true
	s.Server.Register(path, hook)
}

// Start serves until ctx is done and the requests in progress are answered.
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
	var handler http.Handler = s.WebhookMux()
	if s.gate != nil {
		handler = s.gate(func(path string) bool { return s.hooks[path] }, handler)
	}
	answering := context.WithoutCancel(ctx) // a review in progress at shutdown is still answered
	web := &http.Server{
		Handler: handler, BaseContext: func(net.Listener) context.Context { return answering },
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
