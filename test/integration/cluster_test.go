// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// clusterIs waits until a Cluster is Ready, or not Ready for a reason.
func (s *fixture) clusterIs(name, reason string) *shipper.Cluster {
	s.Helper()
	c := &shipper.Cluster{}
	s.soon(fmt.Sprintf("Cluster %s is not %q", name, reason), func() string {
		s.must(s.management.Get(s.ctx, client.ObjectKey{Name: name}, c))
		ready := shipper.FindCondition(c.Status.Conditions, shipper.ClusterReady)
		if ready != nil && ready.Reason == reason && (reason == "") == (ready.Status == corev1.ConditionTrue) &&
			c.Status.InService == (reason == "") {
			return ""
		}
		return fmt.Sprintf("%+v", c.Status)
	})
	return c
}

// mended mends the wire to a cluster and waits until Shipper has noticed.
func (s *fixture) mended(cluster string) {
	s.Helper()
	world.wires[cluster].Mend()
	s.clusterIs(cluster, "")
}

func TestTellsTheVersionOfACluster(t *testing.T) {
	s := begin(t)
	c := s.clusterIs(west, "")
	if !strings.HasPrefix(c.Status.KubernetesVersion, "v1.") || c.Status.ObservedGeneration != c.Generation {
		t.Errorf("status is %+v", c.Status)
	}
}

func TestTellsWhatIsWrongWithASecret(t *testing.T) {
	s := begin(t, west)
	c := aCluster("doubtful", west)
	s.must(s.management.Create(s.ctx, c))
	defer func() { s.must(s.management.Delete(s.ctx, c)) }()
	s.clusterIs(c.Name, shipper.SecretMissing)
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, c.Name)
	s.notInstalled("web-1", c.Name, shipper.SecretMissing)

	secret := clusterSecret(c.Name, west)
	secret.Data["token"] = []byte("not a token of that cluster")
	s.lend(secret)
	s.clusterIs(c.Name, shipper.CredentialsRefused)
	s.notInstalled("web-1", c.Name, shipper.CredentialsRefused)

	for name, wrong := range map[string]map[string][]byte{
		"nothing in it":      {},
		"a CA that is none":  {"token": clusterSecret(c.Name, west).Data["token"], "ca.crt": []byte("x")},
		"the wrong cluster":  clusterSecret(c.Name, east).Data,
		"a key that is none": {"tls.crt": []byte("x"), "tls.key": []byte("y")},
	} {
		t.Log(name)
		s.change(secret, func(client.Object) { secret.Data = wrong })
		if name == "the wrong cluster" { // clusters of this fleet may or may not have a CA in common
			continue
		}
		s.clusterIs(c.Name, shipper.SecretInvalid)
	}
	s.change(secret, func(client.Object) { secret.Data = clusterSecret(c.Name, west).Data })
	s.clusterIs(c.Name, "")
	it := s.installed("web-1")
	s.must(s.management.Delete(s.ctx, it))
	s.gone(it)
}

func TestNamesAClusterThatDiedAndFindsItAgain(t *testing.T) {
	s := begin(t, west, east)
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, west, east)
	s.installed("web-1")
	world.wires[west].Cut()
	defer s.mended(west)
	s.clusterIs(west, shipper.ClusterUnreachable)
	s.notInstalled("web-1", west, shipper.ClusterUnreachable)
	var it shipper.InstallationTarget
	s.must(s.management.Get(s.ctx, s.key("web-1"), &it))
	operational := shipper.FindCondition(it.Status.Conditions, shipper.TargetOperational)
	if operational.Status != corev1.ConditionFalse || operational.Reason != shipper.ClustersNotOperational ||
		!strings.HasPrefix(operational.Message, "west: ClusterUnreachable the API server at ") {
		t.Errorf("Operational is %+v", operational)
	}
	s.scale("web-1", 100, 2, west, east)
	s.soon("the cluster that lives is not scaled", func() string {
		if d := s.deployment(east, "web-1"); *d.Spec.Replicas != 2 {
			return fmt.Sprint(*d.Spec.Replicas)
		}
		return ""
	})
	s.mended(west)
	s.installed("web-1")
	s.scaled("web-1")
}

// TestNamesAClusterWhoseCertificateChanged lets another server, with a certificate of its own, answer for a cluster.
func TestNamesAClusterWhoseCertificateChanged(t *testing.T) {
	s := begin(t, west)
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, west)
	s.installed("web-1")
	other, err := inFrontOf(world.access[west], func(next http.Handler) http.Handler { return next })
	s.must(err)
	t.Cleanup(other.Close)
	address := strings.TrimPrefix(other.URL, "https://")
	was := world.wires[west].Lead(address)
	secret := clusterSecret(west, west)
	defer s.clusterIs(west, "")
	defer func() { s.change(secret, func(client.Object) { secret.Data = clusterSecret(west, west).Data }) }()
	defer world.wires[west].Lead(was)
	s.clusterIs(west, shipper.SecretInvalid)
	message := s.notInstalled("web-1", west, shipper.SecretInvalid)
	if want := "the certificate of " + world.wires[west].url + " is not signed by the CA in the Secret"; message != want {
		t.Errorf("it says %q, want %q", message, want)
	}

	s.change(secret, func(client.Object) {
		secret.Data["ca.crt"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate().Raw})
	})
	s.clusterIs(west, "")
	s.scale("web-1", 100, 2, west)
	s.scaled("web-1")
}

// inFrontOf starts a server that passes on what it is asked, through what is given, and has a certificate of its own.
func inFrontOf(config *rest.Config, through func(http.Handler) http.Handler) (*httptest.Server, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	if err != nil {
		return nil, err
	}
	server := httptest.NewUnstartedServer(through(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.EnableHTTP2 = true
	server.StartTLS()
	return server, nil
}
