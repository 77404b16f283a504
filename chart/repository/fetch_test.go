// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"testing"

	"shipper.dev/shipper/outward"
)

// endless answers every request with bytes that do not end.
type endless struct{}

func (endless) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, ContentLength: -1, Body: endless{}}, nil
}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
func (endless) Close() error               { return nil }

func TestDownloadsAreBoundedOneAndAll(t *testing.T) {
	u, err := parseRepository("https://example.com/x")
	if err != nil {
		t.Fatal(err)
	}
	f := newFetcher(outward.Policy{}, endless{})
	_, _, err = f.get(t.Context(), f.client, u, validators{}, 3<<20, nil)
	if err == nil || err.Error() != "is larger than the 3 MiB that are accepted" {
		t.Errorf("one that is too large gives %v", err)
	}
	if got := f.inFlight.Load(); got != 0 {
		t.Errorf("%d bytes are still counted", got)
	}
	f.inFlight.Store(maxInFlight - 1)
	_, _, err = f.get(t.Context(), f.client, u, validators{}, 3<<20, nil)
	if !errors.Is(err, errBusy) {
		t.Errorf("one too many gives %v", err)
	}
	if got := f.inFlight.Load(); got != maxInFlight-1 {
		t.Errorf("%d bytes are counted", got)
	}
}

func TestNetworkErrorsAreTheSameEachTime(t *testing.T) {
	at := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 443}
	tests := map[string]error{
		"read 10.0.0.1:443: reset": &url.Error{Op: "Get", URL: "http://me:secret@x", Err: &net.OpError{
			Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: 4711}, Addr: at, Err: errors.New("reset"),
		}},
		"looking up x: no such host": &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{
			Name: "x", Server: "10.0.0.2:53", Err: "no such host",
		}},
		"no whole answer in time: context deadline exceeded": &net.OpError{Op: "read", Addr: at, Err: context.DeadlineExceeded},
		"other": errors.New("other"),
	}
	for want, err := range tests {
		if got := outward.Tidy(err).Error(); got != want {
			t.Errorf("%v prints as %q, want %q", err, got, want)
		}
	}
}
