// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"testing"
	"time"
)

// preface starts HTTP/2 with default settings. A connection that has sent it may be idle for idleFor.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"

// TestIdleConnectionsOfAnAddressAreBounded opens more than an address may have, and expects the first one to be closed.
func TestIdleConnectionsOfAnAddressAreBounded(t *testing.T) {
	lender := httptest.NewTLSServer(nil)
	certificate := lender.TLS.Certificates[0]
	lender.Close()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	s := newServer("", func(c *tls.Config) { c.Certificates = []tls.Certificate{certificate} })
	go func() { ended <- s.serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	//nolint:gosec // it is the certificate above
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}}
	var first net.Conn
	for range 751 {
		conn, err := dialer.DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, preface); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = conn
		}
	}
	if err := first.SetReadDeadline(time.Now().Add(idleFor / 3)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, first); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the first of 751 connections is still open")
	}
}
