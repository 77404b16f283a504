// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/outward"
)

// A proxy may have any address, but gets only requests for allowed URLs.
func TestFetchingThroughAProxy(t *testing.T) {
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String())
		_, _ = w.Write([]byte("x"))
	}))
	t.Cleanup(proxy.Close)
	p, err := outward.ParsePolicy("http://*.example.com")
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	f := newFetcher(p, outward.NewTransportThrough(p, http.ProxyURL(at)))
	for text, want := range map[string]bool{
		"http://charts.example.com/index.yaml": true, proxy.URL + "/index.yaml": false, "http://elsewhere/index.yaml": false,
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = f.get(t.Context(), f.client, u, validators{}, 10, func([]byte) error { return nil })
		if (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
	if diff := cmp.Diff([]string{"http://charts.example.com/index.yaml"}, asked); diff != "" {
		t.Errorf("the proxy was asked for (-want +got):\n%s", diff)
	}
}
