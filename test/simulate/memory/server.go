// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"math/big"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Options of a Server.
type Options struct {
	// Kinds are what it serves.
	Kinds []Kind
	// Latency is how long every request but watches waits before it is looked at: what network, admission and disk would take.
	Latency time.Duration
	// PodLatency is how long it takes until a Deployment has what Pods it wants, and these are ready.
	PodLatency time.Duration
	// Admit is called with each object that an update or a patch would store; an error refuses it. Nil: all are stored.
	Admit func(*unstructured.Unstructured) error
	// Told is given the events that are created, which are not kept. Nil: they are dropped.
	Told func(event []byte)
}

// Server is an API server.
type Server struct {
	// URL and CA are how to reach it. Every token will do.
	URL string
	CA  []byte
	// Requests counts what was asked, watches, events and leases aside.
	Requests Requests

	options Options
	http    *http.Server

	mu         sync.Mutex
	version    uint64            // of the last write
	tables     map[string]*table // by Kind.id
	dependents map[string]map[reference]bool
	timers     map[string]bool // keys that are scheduled already
	closed     bool
}

// Requests are counters.
type Requests struct {
	Reads, Writes atomic.Int64
	// FirstWrite is when the first write came since it was set to 0, in nanoseconds of Unix.
	FirstWrite atomic.Int64

	mu    sync.Mutex
	kinds map[string]int
}

// Kinds are how often something was asked, by verb and resource.
func (r *Requests) Kinds() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.kinds)
}

// reference names an object.
type reference struct {
	kind            string // Kind.id
	namespace, name string
}

// Start starts a Server on a free port, with a certificate of its own.
func Start(o Options) (*Server, error) {
	s := &Server{
		options: o, tables: map[string]*table{}, dependents: map[string]map[reference]bool{}, timers: map[string]bool{}, version: 1,
	}
	for _, k := range o.Kinds {
		s.tables[k.id()] = newTable(k)
	}
	certificate, ca, err := certify()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting an API server: %w", err)
	}
	s.URL, s.CA = "https://"+listener.Addr().String(), ca
	s.http = &http.Server{
		Handler: s, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		HTTP2:     &http.HTTP2Config{MaxConcurrentStreams: 1000},
	}
	go func() { _ = s.http.ServeTLS(listener, "", "") }()
	return s, nil
}

// Close ends it.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	_ = s.http.Close()
}

// certify makes a certificate for 127.0.0.1 that is its own authority.
func certify() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("making a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "memory"}, NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("making a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), nil
}
