// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"oras.land/oras-go/v2/errdef"
)

var (
	errNotThere  = errdef.ErrNotFound
	errBrokenOff = errors.New("the answer broke off")
)

// restrictedTransport lets requests go to one server and, where that redirects or has tokens given out elsewhere, to what the policy allows.
// What authorizes them is for the URLs of that server alone that own accepts.
type restrictedTransport struct {
	// scheme is that of the server, and own reports which URLs may be given what authorizes.
	scheme string
	own    func(*url.URL) bool
	policy Policy
	// toOwn makes the requests to own URLs, with the certificates; toOthers those to others.
	toOwn, toOthers http.RoundTripper
	// header authorizes requests that say nothing of it themselves; may be empty.
	header string
	// tokenHost may be given what authorizes, too; may be empty.
	tokenHost string
}

// restrict is a client's transport for the server of u, which a may open.
func (f *fetcher) restrict(u *url.URL, a *access) *restrictedTransport {
	own := func(to *url.URL) bool { return to.Scheme == u.Scheme && to.Host == u.Host }
	l := &restrictedTransport{scheme: u.Scheme, own: own, policy: f.policy, toOwn: f.client.Transport, toOthers: f.client.Transport}
	if a != nil && a.tls != nil {
		transport := newTransport(f.policy)
		transport.TLSClientConfig = a.tls
		l.toOwn = transport
	}
	return l
}

// opened is a client for a repository served over http, which a may open; that of everybody when a is nil.
func (f *fetcher) opened(u *url.URL, a *access) *http.Client {
	if a == nil {
		return f.client
	}
	l := f.restrict(u, a)
	l.header, l.own = a.header(), a.to.covers
	return &http.Client{Transport: l, CheckRedirect: f.policy.redirect}
}

// ofRegistry is a client for a registry. Where on its own server that leads is up to the registry.
func (f *fetcher) ofRegistry(u *url.URL, a *access) *http.Client {
	l := f.restrict(u, a)
	if a != nil {
		l.tokenHost = a.tokenHost
	}
	return &http.Client{Transport: l, CheckRedirect: func(request *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxRedirects:
			return fmt.Errorf("redirected more than %d times", maxRedirects)
		case via[len(via)-1].URL.Scheme == "https" && request.URL.Scheme != "https":
			return &denied{"redirected from https to " + request.URL.Scheme}
		}
		return nil
	}}
}

// RoundTrip sends a request, or refuses to.
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
	if err := l.policy.check(request.URL); err != nil {
		return nil, &denied{fmt.Sprintf("leads to %s: %s", redact(request.URL), err)}
	}
	bare := request.Clone(request.Context())
	bare.Body = nil // a body is what a token is asked for with
	if l.tokenHost == "" || request.URL.Host != l.tokenHost || request.URL.Scheme != l.scheme {
		bare.Header.Del("Authorization")
	}
	return l.toOthers.RoundTrip(bare)
}
