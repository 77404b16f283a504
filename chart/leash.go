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

// leash lets a registry's requests go to the registry itself and, where it redirects or has tokens given out elsewhere, to what
// the policy allows. What authorizes them is for the registry alone.
type leash struct {
	base   http.RoundTripper
	policy Policy
	// own has the scheme and the host of the registry.
	own *url.URL
}

// leashed is a client for the registry at own.
func (f *fetcher) leashed(own *url.URL) *http.Client {
	return &http.Client{
		Transport: &leash{base: f.client.Transport, policy: f.policy, own: own},
		CheckRedirect: func(request *http.Request, via []*http.Request) error {
			switch {
			case len(via) > maxRedirects:
				return fmt.Errorf("redirected more than %d times", maxRedirects)
			case via[len(via)-1].URL.Scheme == "https" && request.URL.Scheme != "https":
				return &denied{"redirected from https to " + request.URL.Scheme}
			}
			return nil
		},
	}
}

// RoundTrip sends a request, or refuses to.
func (l *leash) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme == l.own.Scheme && request.URL.Host == l.own.Host {
		return l.base.RoundTrip(request)
	}
	if request.Body != nil {
		defer request.Body.Close()
	}
	if err := l.policy.check(request.URL); err != nil {
		return nil, &denied{fmt.Sprintf("leads to %s: %s", redact(request.URL), err)}
	}
	bare := request.Clone(request.Context())
	bare.Body = nil // a body is what a token is asked for with
	bare.Header.Del("Authorization")
	return l.base.RoundTrip(bare)
}
