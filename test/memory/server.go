// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"hash/fnv"
	"io"
	"log"
	"maps"
	"math/big"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"
)

// Options of a Server.
type Options struct {
	// Kinds are what it serves.
	Kinds []Kind
	// Latency is how long every request but watches waits before it is looked at: what network, admission and disk would take.
	Latency time.Duration
	// DeploymentLatency is how long a Deployment takes to create and remove Pods. 0: as long as other controllers take, 10 ms.
	DeploymentLatency time.Duration
	// PodLatency is how long a new Pod takes to get ready; a negative one has it ready at the moment when it is created. PodEnd is how
	// long a deleted Pod remains, terminating.
	PodLatency, PodEnd time.Duration
	// EndpointLatency is how long EndpointSlices take to follow their Pods. 0: as long as other controllers take. Negative: they follow
	// at the same moment, for tests in real time, where a busy machine delays them at will.
	EndpointLatency time.Duration
	// JobLatency is how long a ready Pod of a Job, or one that is a hook of a chart, takes to complete.
	JobLatency time.Duration
	// Enter is called before a write is stored, with the server's mutex held. Its error refuses the write; leave is called when the
	// write is stored (done) or refused. Nil: all writes are stored.
	Enter func(*http.Request) (leave func(done bool), err error)
	// Noted is called with each stored change, with the server's mutex held: kindID is Kind.ID, gone says that the object was removed.
	// Nothing in the object changes later, and Noted must not change it.
	Noted func(kindID string, u *unstructured.Unstructured, gone bool)
	// Mutate is called before a write is validated, without the mutex, and may replace or change Review.Object. What it changes is
	// validated, and not defaulted. Nil: no change.
	Mutate func(*Review) error
	// Review is called with each validated write before it is stored, without the mutex. Its error refuses the write. It must not
	// change Review.Object. If the stored object changes meanwhile, the write is computed and reviewed again. Nil: no review.
	Review func(*Review) error
	// Reviewed says of what kind, and of which subresource of it, writes are passed to Mutate and Review. Nil: all.
	Reviewed func(k Kind, subresource string) bool
	// Authorize is asked before each request, and by access reviews. Nil: everything is allowed.
	Authorize func(context.Context, authorizer.Attributes) (allowed bool, reason string)
	// User returns who sends a request that has no impersonation headers. Nil: system:admin in system:masters.
	User func(*http.Request) user.Info
	// Event is called with the body of each Event that is created; Events are not stored. Nil: they are dropped.
	Event func(event []byte)
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
	tables     map[string]*table // by Kind.ID
	dependents map[string]map[reference]bool
	timers     map[string]bool // keys that are scheduled already
	uids       map[string]int  // of all stored objects
	closed     bool
	ids        uint64 // how many were given
	names      uint64 // how many were generated
	addresses  int    // of Services

	revisions map[string]corev1.PodTemplateSpec // of StatefulSets, by UID and name
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

// init keeps reported errors from being slowed down: Kubernetes' limiter of them remembers a time of the process, which is decades
// away from the time in a bubble of testing/synctest, and would sleep for as long.
func init() {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] // the first one logs
}

// New makes a Server without a listener: an http.Handler that answers for a URL. It can be used in a bubble of testing/synctest: it
// starts no goroutine, and its timers end with Shut.
func New(url string, o Options) *Server {
	s := &Server{
		URL: url, options: o, version: 1, tables: map[string]*table{}, dependents: map[string]map[reference]bool{},
		timers: map[string]bool{}, uids: map[string]int{}, revisions: map[string]corev1.PodTemplateSpec{},
	}
	for _, k := range o.Kinds {
		s.tables[k.ID()] = newTable(k)
	}
	if s.tables[namespacesID] != nil {
		for _, name := range []string{metav1.NamespaceDefault, "kube-node-lease", metav1.NamespacePublic, metav1.NamespaceSystem} {
			s.add(s.tables[namespacesID], newNamespace(name))
		}
	}
	return s
}

// Prepare compiles the schemas of kinds, which otherwise happens with the first request for them: once for all Servers of a process.
func Prepare(kinds ...Kind) error {
	for _, k := range kinds {
		if _, err := serve(k); err != nil {
			return err
		}
	}
	return nil
}

// Start starts a Server on a free port, with a certificate of its own.
func Start(o Options) (*Server, error) {
	s := New("", o)
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

// Config is how clients reach a Server that Start started.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{CAData: s.CA}, BearerToken: "any"}
}

// Close ends what Start started.
func (s *Server) Close() {
	s.Shut()
	_ = s.http.Close()
}

// suffix returns the end of the next generated name, in the letters that Kubernetes uses. The server's mutex is held.
func (s *Server) suffix() string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	s.names++
	n := s.names * 2654435761 % (27 * 27 * 27 * 27 * 27) // spread, and different for each of the first 14 million
	out := make([]byte, 5)
	for i := range out {
		out[i], n = letters[n%27], n/27
	}
	return string(out)
}

// Shut ends the controllers: their timers do nothing any more. Requests are still answered.
func (s *Server) Shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// id returns the next UID. It counts, so that runs can be repeated; no two servers have the same. The server's mutex is held.
func (s *Server) id() types.UID {
	s.ids++
	of := fnv.New32a()
	_, _ = of.Write([]byte(s.URL))
	return types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(s.ids*2654435761)^of.Sum32(), s.ids))
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
