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

// Clients knows who may ask the webhook: whoever has a certificate of one of the authorities in a file, which is read again
// when it changes. A nil Clients lets everybody ask.
//
// Certificates are looked at with every request, not only when a connection is made: API servers keep theirs for long, and
// what an authority that is gone has signed must not count until then.
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
	// Who it is does not matter once the certificate is right.
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

// NeedLeaderElection is false: every replica is asked.
func (*Clients) NeedLeaderElection() bool { return false }

// Configure has a server ask for certificates. It does not demand them: the readiness probe, which asks for nothing, has
// none.
func (c *Clients) Configure(t *tls.Config) {
	if c != nil {
		t.ClientAuth = tls.RequestClientCert
	}
}

// Require answers those who may not ask, before their request is read.
func (c *Clients) Require(next http.Handler) http.Handler {
	if c == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, known, err := c.certificate.AuthenticateRequest(r); err != nil || !known {
			// Not err: it tells of certificates what only their owner needs to know.
			http.Error(w, "a certificate of an authority that is known here is needed", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
