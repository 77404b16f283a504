// SPDX-License-Identifier: Apache-2.0

package charts

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
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Public is the repository that the examples name: it is public, and has some of the charts of this package.
const Public = "https://raw.githubusercontent.com/bookingcom/shipper/master/test/e2e/testdata"

// Examples is Helm's repository of examples. The chart hello-world of this package is as `helm create hello-world` makes it.
const Examples = "https://helm.github.io/examples"

// Mirror plays public repositories, so that manifests that name them need no network. It is a proxy: connections to the hosts of
// the repositories lead to this machine, all others where they were going.
type Mirror struct {
	// Proxy is what HTTPS_PROXY is to be.
	Proxy string
	// Authority is the certificate, in PEM, that a client must trust.
	Authority []byte

	paths      map[string]string // the repositories' paths by host
	repository *Repository
	proxy, web *http.Server
	listener   net.Listener // of the web server
}

// StartMirror plays the repositories at URLs of https, one a host, each with all charts.
func StartMirror(repoURLs ...string) (*Mirror, error) {
	m := &Mirror{paths: map[string]string{}}
	for _, repoURL := range repoURLs {
		at, err := url.Parse(repoURL)
		if err != nil {
			return nil, fmt.Errorf("reading the URL of the repository: %w", err)
		}
		m.paths[at.Hostname()] = at.Path
	}
	hosts := slices.Sorted(maps.Keys(m.paths))
	certificate, err := certify(hosts)
	if err != nil {
		return nil, fmt.Errorf("making a certificate for %s: %w", strings.Join(hosts, ", "), err)
	}
	m.Authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
	if m.repository, err = Start(); err != nil {
		return nil, err
	}
	here := &net.ListenConfig{}
	if m.listener, err = here.Listen(context.Background(), "tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("starting a mirror: %w", err)
	}
	entrance, err := here.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting a proxy: %w", err)
	}
	m.Proxy = "http://" + entrance.Addr().String()
	m.web = &http.Server{
		ReadHeaderTimeout: time.Minute, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		Handler: http.HandlerFunc(m.serve),
	}
	m.proxy = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(m.connect)}
	go func() { _ = m.web.ServeTLS(m.listener, "", "") }()
	go func() { _ = m.proxy.Serve(entrance) }()
	return m, nil
}

// Close ends the mirror.
func (m *Mirror) Close() {
	_, _ = m.proxy.Close(), m.web.Close()
	m.repository.Close()
}

// serve answers as the repository of the host that a request names.
func (m *Mirror) serve(w http.ResponseWriter, r *http.Request) {
	path, played := m.paths[r.Host]
	file, ok := strings.CutPrefix(r.URL.Path, path)
	if !played || !ok {
		http.NotFound(w, r)
		return
	}
	r.URL.Path = "/charts" + file
	m.repository.ServeHTTP(w, r)
}

// connect leads a client to where it wants to go, or to the mirror.
func (m *Mirror) connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only for https", http.StatusMethodNotAllowed)
		return
	}
	address := r.Host
	if host, port, err := net.SplitHostPort(address); err == nil && port == "443" && m.plays(host) {
		address = m.listener.Addr().String()
	}
	to, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(r.Context(), "tcp", address)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer to.Close()
	from, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer from.Close()
	if _, err := io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	ended := make(chan struct{}, 2)
	for _, way := range []struct {
		to   io.Writer
		from io.Reader
	}{{to, buffered}, {from, to}} {
		go func() {
			_, _ = io.Copy(way.to, way.from)
			ended <- struct{}{}
		}()
	}
	<-ended // the other way ends as both are closed
}

// plays reports whether a repository of the mirror is at a host.
func (m *Mirror) plays(host string) bool {
	_, is := m.paths[host]
	return is
}

// certify makes a certificate for hosts, signed by itself.
func certify(hosts []string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a mirror of " + strings.Join(hosts, ", ")}, DNSNames: hosts,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	made, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{made}, PrivateKey: key}, err
}
