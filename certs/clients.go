// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// Clients authenticates the callers of the webhook: each needs a certificate of an authority in a file, which is read again
// when it changes. A nil Clients admits all callers.
//
// It checks certificates with every request, not only when a connection opens: API servers keep connections for long, and
// certificates of a removed authority must stop working at once.
type Clients struct {
	authorities *dynamiccertificates.DynamicFileCAContent
	certificate authenticator.Request
}

// NewClients reads the authorities in file. With names, a certificate must have one of them as its common name.
func NewClients(file string, names []string) (*Clients, error) {
	authorities, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca", file)
	if err != nil {
		return nil, fmt.Errorf("reading who may ask: %w", err)
	}
	// The user does not matter once the certificate is valid.
	anybody := authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
		return &authenticator.Response{User: &user.DefaultInfo{}}, true, nil
	})
	return &Clients{
		authorities: authorities,
		certificate: x509request.NewDynamicCAVerifier(authorities.VerifyOptions, anybody, x509request.StaticStringSlice(names)),
	}, nil
}

// Start reads the file again whenever it changes, until ctx is done.
func (c *Clients) Start(ctx context.Context) error {
	c.authorities.Run(ctx, 1)
	return nil
}

// NeedLeaderElection is false: every replica gets requests.
func (*Clients) NeedLeaderElection() bool { return false }

// Configure makes a server request certificates without requiring them: the readiness probe has none.
func (c *Clients) Configure(t *tls.Config) {
	if c != nil {
		t.ClientAuth = tls.RequestClientCert
	}
}

// Require refuses callers without a valid certificate before it reads their requests.
func (c *Clients) Require(next http.Handler) http.Handler {
	if c == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, known, err := c.certificate.AuthenticateRequest(r); err != nil || !known {
			// Not err: it describes the caller's certificate.
			http.Error(w, "a certificate of an authority that is known here is needed", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
