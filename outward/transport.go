// SPDX-License-Identifier: Apache-2.0

package outward

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

const (
	dialTimeout   = 10 * time.Second
	answerTimeout = 15 * time.Second
	maxRedirects  = 5
)

// NewTransport connects only to addresses that policy allows. The check is made on the resolved address at each connection, so
// that DNS changes cannot bypass it.
//
// A proxy of the environment is not checked, because the administrator sets it. The proxy resolves names itself; then policy
// checks only URLs.
func NewTransport(policy Policy) *http.Transport {
	return NewTransportThrough(policy, http.ProxyFromEnvironment)
}

// NewTransportThrough is NewTransport with the proxies that choose returns in place of the environment's.
func NewTransportThrough(policy Policy, choose func(*http.Request) (*url.URL, error)) *http.Transport {
	return &http.Transport{
		Proxy:                  choose,
		DialContext:            policy.dial(proxies(choose)),
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           100,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    dialTimeout,
		ResponseHeaderTimeout:  answerTimeout,
		MaxResponseHeaderBytes: 1 << 20,
	}
}

// proxies are the dialled addresses of the proxies that choose returns.
func proxies(choose func(*http.Request) (*url.URL, error)) map[string]bool {
	out := map[string]bool{}
	for _, scheme := range []string{"http", "https"} {
		// Any host except those that are never requested through a proxy.
		request := &http.Request{URL: &url.URL{Scheme: scheme, Host: "any.invalid"}}
		if proxy, err := choose(request); err == nil && proxy != nil {
			out[net.JoinHostPort(proxy.Hostname(), proxyPort(proxy))] = true
		}
	}
	return out
}

func proxyPort(proxy *url.URL) string {
	if port := proxy.Port(); port != "" {
		return port
	}
	return map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[proxy.Scheme]
}

// dial connects to addresses that the policy allows, and to proxies.
func (p Policy) dial(proxies map[string]bool) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
		if proxies[address] {
			return dialer.DialContext(ctx, network, address)
		}
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("reading the address to connect to: %w", err)
		}
		dialer.Control = func(_, resolved string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(resolved)
			if err != nil {
				return fmt.Errorf("reading the address to connect to: %w", err)
			}
			return p.checkAddress(host, to.Addr())
		}
		return dialer.DialContext(ctx, network, address)
	}
}

// Redirect follows a few redirects to allowed URLs, but not from https to http.
func (p Policy) Redirect(request *http.Request, via []*http.Request) error {
	if err := LimitRedirects(request, via); err != nil {
		return err
	}
	var why *Denied
	if err := p.Check(request.URL); errors.As(err, &why) {
		return &Denied{fmt.Sprintf("redirected to %s: %s", Redact(request.URL), why)}
	}
	return nil
}

// LimitRedirects follows a few redirects, but not from https to http. It does not check the URL: the transport must.
func LimitRedirects(request *http.Request, via []*http.Request) error {
	switch {
	case len(via) > maxRedirects:
		return fmt.Errorf("redirected more than %d times", maxRedirects)
	case via[len(via)-1].URL.Scheme == "https" && request.URL.Scheme != "https":
		return &Denied{"redirected from https to " + request.URL.Scheme}
	}
	return nil
}

// NoRedirects returns a redirect as it was answered: a request that has credentials or a body goes to no second server.
func NoRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
