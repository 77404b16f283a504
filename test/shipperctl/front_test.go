// SPDX-License-Identifier: Apache-2.0

package shipperctl

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// joinTrustsWhatStandsBeforeTheAPIServer joins by a front end with a certificate of its own, which kubeconfigs trust.
func joinTrustsWhatStandsBeforeTheAPIServer(t *testing.T) {
	door := front(t, west)
	kubeconfig, trusted := through(t, door)
	const clusters = "applicationClusters:\n- {name: eu-west-1, region: eu-west, context: front}\n"
	join := func(text string) {
		t.Helper()
		if out, err := runIn(t, kubeconfig, "join", "-f", file(t, text), "--webhook-ignore"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if err := connect(t, as(t, west)).List(t.Context(), &corev1.PodList{}); err != nil {
			t.Errorf("what join wrote does not work: %v", err)
		}
	}
	join(clusters)
	if got := as(t, west); got.Host != door.URL || string(got.CAData) != string(trusted) {
		t.Errorf("the Cluster is at %s, and trusted is\n%s", got.Host, got.CAData)
	}
	before := versions(t)
	join(clusters)
	if diff := cmp.Diff(before, versions(t)); diff != "" {
		t.Errorf("joining again has written\n%s", diff)
	}
	// Shipper is to go past it, where another authority has signed.
	join(strings.Replace(clusters, "}", ", apiMaster: '"+server(t, west)+"'}", 1))
	succeeds(t, "join", "-f", file(t, both(t)), "--webhook-ignore")
}

// front starts a server with a certificate of its own that passes requests on to an application cluster. One without a
// token is the administrator's.
func front(t *testing.T, name string) *httptest.Server {
	t.Helper()
	admin := fleetOf(t).Applications[0].Config
	for _, c := range fleetOf(t).Applications {
		if c.Name == name {
			admin = c.Config
		}
	}
	target, err := neturl.Parse(admin.Host)
	if err != nil {
		t.Fatal(err)
	}
	known, err := rest.TransportFor(admin)
	if err != nil {
		t.Fatal(err)
	}
	anonymous, err := rest.TransportFor(rest.AnonymousClientConfig(admin))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Header.Get("Authorization") == "" {
				return known.RoundTrip(r)
			}
			return anonymous.RoundTrip(r)
		}),
	})
	t.Cleanup(server.CloseClientConnections)
	return server
}

// roundTrip is a transport made of a function.
type roundTrip func(r *http.Request) (*http.Response, error)

// RoundTrip calls it.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	return f(r)
}

// through returns the path of the fleet's kubeconfig with one more context, front, that goes through a server and trusts it, and the
// CA that it trusts.
func through(t *testing.T, server *httptest.Server) (path string, trusted []byte) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(fleetOf(t).Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	trusted = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config.Clusters["front"] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: trusted}
	config.AuthInfos["front"] = &clientcmdapi.AuthInfo{}
	config.Contexts["front"] = &clientcmdapi.Context{Cluster: "front", AuthInfo: "front"}
	path = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path, trusted
}
