// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	poll "k8s.io/apimachinery/pkg/util/wait"
)

// signer signs certificates of clients.
type signer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newSigner(t *testing.T, name string) *signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	s := &signer{key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	if s.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return s
}

// client is a certificate for name, edited by edits.
func (s *signer) client(t *testing.T, name string, edits ...func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, edit := range edits {
		edit(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, s.certificate, &key.PublicKey, s.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// guard serves a handler that reads all bodies behind c, over TLS, and counts the requests that c admits.
func guard(t *testing.T, c *Clients) (server *httptest.Server, through *int) {
	t.Helper()
	through = new(int)
	server = httptest.NewUnstartedServer(c.Require(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		*through++
	})))
	server.TLS, server.EnableHTTP2 = &tls.Config{}, true
	c.Configure(server.TLS)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, through
}

// with is a client of server that sends certificates.
func with(server *httptest.Server, certificates ...tls.Certificate) *http.Client {
	transport := server.Client().Transport.(*http.Transport).Clone()
	transport.TLSClientConfig.Certificates = certificates
	return &http.Client{Transport: transport}
}

func post(t *testing.T, client *http.Client, server *httptest.Server) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOnlyPermittedClientsAreAnswered(t *testing.T) {
	ours, theirs := newSigner(t, "ours"), newSigner(t, "theirs")
	file := filepath.Join(t.TempDir(), "ca.crt")
	write(t, file, ours.pem)
	for sentence, tc := range map[string]struct {
		names        []string
		certificates []tls.Certificate
		want         int
	}{
		"with a certificate of the authority": {certificates: []tls.Certificate{ours.client(t, "kube-apiserver")}, want: 200},
		"with a name that may": {
			names: []string{"other", "kube-apiserver"}, certificates: []tls.Certificate{ours.client(t, "kube-apiserver")}, want: 200,
		},
		"with a name that may not": {names: []string{"kube-apiserver"}, certificates: []tls.Certificate{ours.client(t, "pod")}, want: 401},
		"without a certificate":    {want: 401},
		"with one of another authority": {
			certificates: []tls.Certificate{theirs.client(t, "kube-apiserver")}, want: 401,
		},
		"with one that has ended": {certificates: []tls.Certificate{ours.client(t, "kube-apiserver", func(c *x509.Certificate) {
			c.NotAfter = time.Now().Add(-time.Minute)
		})}, want: 401},
		"with one for servers": {certificates: []tls.Certificate{ours.client(t, "kube-apiserver", func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		})}, want: 401},
	} {
		t.Run(sentence, func(t *testing.T) {
			clients, err := NewClients(file, tc.names)
			if err != nil {
				t.Fatal(err)
			}
			server, through := guard(t, clients)
			if got := post(t, with(server, tc.certificates...), server); got != tc.want {
				t.Errorf("answered %d, want %d", got, tc.want)
			}
			if want := map[int]int{200: 1}[tc.want]; *through != want {
				t.Errorf("%d requests came through, want %d", *through, want)
			}
		})
	}
}

func TestWithoutAuthoritiesAllClientsAreAnswered(t *testing.T) {
	var all *Clients
	server, _ := guard(t, all)
	if got := post(t, with(server), server); got != http.StatusOK {
		t.Errorf("answered %d", got)
	}
}

// A connection outlives the authority that it was opened with, but its rights end with the authority.
func TestAuthoritiesOfClientsAreReadAgain(t *testing.T) {
	before, after := newSigner(t, "before"), newSigner(t, "after")
	file := filepath.Join(t.TempDir(), "ca.crt")
	write(t, file, before.pem)
	clients, err := NewClients(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- clients.Start(ctx) }()
	server, _ := guard(t, clients)
	old, fresh := with(server, before.client(t, "kube-apiserver")), with(server, after.client(t, "kube-apiserver"))
	if got := []int{post(t, old, server), post(t, fresh, server)}; got[0] != 200 || got[1] != 401 {
		t.Errorf("before, the answers are %v", got)
	}
	write(t, file, after.pem)
	err = poll.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return post(t, fresh, server) == http.StatusOK, nil
	})
	if err != nil {
		t.Error("the new authority is never trusted")
	}
	if got := []int{post(t, old, server), post(t, fresh, server)}; got[0] != 401 || got[1] != 200 {
		t.Errorf("after, the answers are %v", got)
	}
	write(t, file, []byte("nothing"))
	if err := clients.authorities.RunOnce(ctx); err == nil {
		t.Error("a file that holds no authority was taken")
	}
	if got := post(t, fresh, server); got != http.StatusOK {
		t.Errorf("with a broken file the answer is %d: those that were known are known still", got)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAuthoritiesThatAreNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.crt")
	if _, err := NewClients(file, nil); err == nil {
		t.Error("a file that is not there was taken")
	}
	write(t, file, []byte("nothing"))
	if _, err := NewClients(file, nil); err == nil {
		t.Error("a file that holds no authority was taken")
	}
}
