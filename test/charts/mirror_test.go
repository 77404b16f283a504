// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMirror(t *testing.T) {
	m, err := StartMirror(Public, Examples)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	t.Cleanup(elsewhere.Close)
	proxy, err := url.Parse(m.Proxy)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(m.Authority)
	roots.AddCert(elsewhere.Certificate())
	client := &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}}
	got := map[string]int{}
	want := map[string]int{
		Public + "/index.yaml":                                    http.StatusOK,
		Public + "/nginx-0.0.1.tgz":                               http.StatusOK,
		Examples + "/index.yaml":                                  http.StatusOK,
		Examples + "/hello-world-0.1.0.tgz":                       http.StatusOK,
		"https://raw.githubusercontent.com/another/project/x.tgz": http.StatusNotFound,
		elsewhere.URL:                                             http.StatusTeapot,
	}
	for address := range want {
		answer, err := client.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		got[address] = answer.StatusCode
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got)\n%s", diff)
	}
}
