// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"oras.land/oras-go/v2/errdef"

	"shipper.dev/shipper/outward"
)

var (
	errNotThere  = errdef.ErrNotFound
	errBrokenOff = errors.New("the answer broke off")
)

// restrictedTransport lets requests go to one server and, for its redirects and token services, to URLs that the policy allows.
// It sends credentials only to the URLs of that server that own accepts.
type restrictedTransport struct {
	// scheme is the server's scheme, and own reports which URLs get credentials.
	scheme string
	own    func(*url.URL) bool
	policy outward.Policy
	// toOwn sends requests to own URLs, with the certificates; toOthers sends the others.
	toOwn, toOthers http.RoundTripper
	// header is added to requests without an Authorization header; may be empty.
	header string
	// tokenHost also gets credentials; may be empty.
	tokenHost string
}

// restrict is a client's transport for the server of u, with the credentials in a.
func (f *fetcher) restrict(u *url.URL, a *access) *restrictedTransport {
	own := func(to *url.URL) bool { return to.Scheme == u.Scheme && to.Host == u.Host }
	l := &restrictedTransport{scheme: u.Scheme, own: own, policy: f.policy, toOwn: f.client.Transport, toOthers: f.client.Transport}
	if a != nil && a.tls != nil {
		transport := outward.NewTransport(f.policy)
		transport.TLSClientConfig = a.tls
		l.toOwn = transport
	}
	return l
}

// opened is a client for a repository served over http with the credentials in a; the shared client when a is nil.
func (f *fetcher) opened(u *url.URL, a *access) *http.Client {
	if a == nil {
		return f.client
	}
	l := f.restrict(u, a)
	l.header, l.own = a.header(), a.to.covers
	return &http.Client{Transport: l, CheckRedirect: f.policy.Redirect}
}

// ofRegistry is a client for a registry. It may use any path on the registry's server.
func (f *fetcher) ofRegistry(u *url.URL, a *access) *http.Client {
	l := f.restrict(u, a)
	if a != nil {
		l.tokenHost = a.tokenHost
	}
	return &http.Client{Transport: l, CheckRedirect: outward.LimitRedirects}
}

// RoundTrip sends a request, or refuses it.
func (l *restrictedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if l.own(request.URL) {
		if l.header != "" && request.URL.User == nil && request.Header.Get("Authorization") == "" {
			request = request.Clone(request.Context())
			request.Header.Set("Authorization", l.header)
		}
		return l.toOwn.RoundTrip(request)
	}
	if request.Body != nil {
		defer request.Body.Close()
	}
	if err := l.policy.Check(request.URL); err != nil {
		return nil, &outward.Denied{Why: fmt.Sprintf("leads to %s: %s", outward.Redact(request.URL), err)}
	}
	bare := request.Clone(request.Context())
	bare.Body = nil // a request for a token has the credentials in its body
	if l.tokenHost == "" || request.URL.Host != l.tokenHost || request.URL.Scheme != l.scheme {
		bare.Header.Del("Authorization")
	}
	return l.toOthers.RoundTrip(bare)
}
