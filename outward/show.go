// SPDX-License-Identifier: Apache-2.0

package outward

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
)

// Tidy removes from an error of net/http the parts that are shown elsewhere, may hold credentials, or differ between attempts:
// the URL, the local port, and the name server.
func Tidy(err error) error {
	if why, ok := errors.AsType[*Denied](err); ok {
		return why
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no whole answer in time: %w", context.DeadlineExceeded)
	}
	if lookup, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Errorf("looking up %s: %s", lookup.Name, lookup.Err)
	}
	if met, ok := errors.AsType[*net.OpError](err); ok && met.Addr != nil {
		return fmt.Errorf("%s %s: %w", met.Op, met.Addr, met.Err)
	}
	return err
}

// Show is the text of an error of a request, without parts that may be secret. Errors of other kinds may quote a header that was sent,
// or the answer.
func Show(err error) string {
	_, denied := errors.AsType[*Denied](err)
	_, lookup := errors.AsType[*net.DNSError](err)
	_, network := errors.AsType[*net.OpError](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case denied, lookup, network, certificate, errors.Is(err, context.DeadlineExceeded), errors.Is(err, io.EOF):
		return Tidy(err).Error()
	case errors.Is(err, context.Canceled):
		return context.Canceled.Error()
	case errors.Is(err, ErrTooLong):
		return ErrTooLong.Error()
	default:
		return "the request or the answer is no valid HTTP"
	}
}

// Redact formats a URL without its secret parts.
func Redact(u *url.URL) string {
	shown := *u
	shown.User, shown.Fragment, shown.RawFragment = nil, "", ""
	query := shown.RawQuery != ""
	shown.RawQuery, shown.ForceQuery = "", false
	if query {
		return shown.String() + "?…"
	}
	return shown.String()
}
