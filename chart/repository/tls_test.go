// SPDX-License-Identifier: Apache-2.0

package repository_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/test/charts"
)

// authority signs client certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{signed, key}
}

func (a authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}))
}

// vouchesFor makes a certificate and its key, in PEM.
func (a authority) vouchesFor(t *testing.T, name string) (certificate, private string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, form, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// demanding serves nginx 0.0.1 to clients with a certificate of an authority. Its index names another server's archive
// when there is one.
func demanding(t *testing.T, clients authority, elsewhere string) *protected {
	t.Helper()
	archive, err := charts.Get("nginx", "0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	p := &protected{archive: archive}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/index.yaml" {
			_, _ = w.Write(archive.Bytes)
			return
		}
		_, _ = io.WriteString(w, "apiVersion: v1\nentries:\n  nginx:\n  - {name: nginx, version: 0.0.1, urls: ['"+elsewhere+"nginx.tgz'], "+
			"digest: "+archive.Digest+"}\n")
	}))
	pool := x509.NewCertPool()
	pool.AddCert(clients.certificate)
	p.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	p.Config.ErrorLog = log.New(io.Discard, "", 0) // it logs the refused clients
	p.StartTLS()
	t.Cleanup(p.Close)
	return p
}

func TestAServerThatRequiresClientCertificates(t *testing.T) {
	known, other := newAuthority(t), newAuthority(t)
	certificate, key := known.vouchesFor(t, "ann")
	stranger, strangersKey := other.vouchesFor(t, "ann")
	for sentence, tc := range map[string]struct {
		secret  map[string]string // ca.crt is the server's unless it says otherwise
		failure string
	}{
		"a certificate that its authority vouches for": {map[string]string{"tls.crt": certificate, "tls.key": key}, ""},
		"no certificate":                     {map[string]string{}, "certificate required"},
		"a certificate of another authority": {map[string]string{"tls.crt": stranger, "tls.key": strangersKey}, "unknown certificate authority"},
		"the key of another certificate": {map[string]string{"tls.crt": certificate, "tls.key": strangersKey},
			"Secret team/opener has no certificate and its key, in PEM, under tls.crt and tls.key"},
		"an authority that does not vouch for the server": {map[string]string{"tls.crt": certificate, "tls.key": key, "ca.crt": other.pem()},
			"certificate signed by unknown authority"},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := demanding(t, known, "")
			if tc.secret["ca.crt"] == "" {
				tc.secret["ca.crt"] = p.ca()
			}
			tc.secret[forURL] = p.URL
			s := newEnv(t, func(o *repository.Options) {
				o.Secrets, o.Repositories = secrets{"team/opener": tc.secret}.read, anywhereHere(t)
			})
			got, err := s.Resolve(t.Context(), "team", p.chart("opener"))
			if tc.failure != "" {
				if err == nil || !strings.Contains(err.Error(), tc.failure) || strings.Contains(err.Error(), "PRIVATE KEY") {
					t.Errorf("got %v, want %s", err, tc.failure)
				}
				return
			}
			if diff := cmp.Diff(repository.Resolution{Version: "0.0.1", Digest: p.archive.Digest}, got); diff != "" || err != nil {
				t.Fatalf("%v (-want +got)\n%s", err, diff)
			}
			if loaded, err := s.Load(t.Context(), "team", p.chart("opener"), got.Digest); err != nil || loaded.Digest() != p.archive.Digest {
				t.Errorf("loading: %v", err)
			}
		})
	}
}

// A certificate is shown to the server of repoUrl alone, as a password is, and only its Secret's authorities vouch for that.
func TestACertificateIsShownToNoOtherServer(t *testing.T) {
	clients := newAuthority(t)
	certificate, key := clients.vouchesFor(t, "ann")
	other := demanding(t, clients, "")
	first := demanding(t, clients, other.URL+"/")
	s := newEnv(t, func(o *repository.Options) {
		o.Secrets, o.Repositories = secrets{"team/opener": {
			"tls.crt": certificate, "tls.key": key, "ca.crt": first.ca() + other.ca(), forURL: first.URL,
		}}.read, anywhereHere(t)
	})
	if _, err := s.Resolve(t.Context(), "team", first.chart("opener")); err != nil {
		t.Fatal(err)
	}
	_, err := s.Load(t.Context(), "team", first.chart("opener"), "")
	if err == nil {
		t.Error("the other server let it in")
	} else if !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v", err)
	}
}
