// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

var end = time.Date(2126, 11, 21, 0, 0, 0, 0, time.UTC)

var serverAuth = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}

// certificate makes one for names that ends at end.
func certificate(t *testing.T, names ...string) (certPEM, keyPEM []byte) {
	t.Helper()
	r := &rotator.CertRotator{CAName: caName, DNSName: names[0], ExtraDNSNames: names[1:], ExtKeyUsages: &serverAuth}
	begin := end.AddDate(-200, 0, 0)
	ca, err := r.CreateCACert(begin, end)
	if err != nil {
		t.Fatal(err)
	}
	certPEM, keyPEM, err = r.CreateCertPEM(ca, begin, end)
	if err != nil {
		t.Fatal(err)
	}
	return certPEM, keyPEM
}

func secretOf(certPEM, keyPEM []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shipper-system", Name: "shipper-webhook-cert"},
		Data:       map[string][]byte{"ca.key": []byte("kept"), certKey: certPEM, keyKey: keyPEM},
	}
}

func TestTheNewestUsableCertificateIsServed(t *testing.T) {
	loaded := 0
	s := &secret{log: logr.Discard(), loaded: func() { loaded++ }}
	serves := func(want string) {
		t.Helper()
		got := ""
		if c, err := s.GetCertificate(nil); err == nil {
			got = c.Leaf.DNSNames[0]
		}
		if got != want || (s.Ready(nil) == nil) != (want != "") {
			t.Errorf("serves %q (ready: %v), want %q", got, s.Ready(nil), want)
		}
	}
	serves("")
	s.take(&corev1.Secret{})
	serves("")
	s.take(secretOf(certificate(t, "one")))
	serves("one")
	s.take(secretOf([]byte("broken"), []byte("broken")))
	serves("one")
	s.take(&corev1.Secret{})
	serves("one")
	s.take(secretOf(certificate(t, "two")))
	serves("two")
	if loaded != 2 {
		t.Errorf("told of %d certificates, want 2", loaded)
	}
}

func TestSelfIsReadyWhenItIsTrusted(t *testing.T) {
	s := &self{secret: &secret{log: logr.Discard()}, trusted: make(chan struct{})}
	if err := s.Ready(nil); err == nil || err.Error() != errNoCertificate.Error() {
		t.Errorf("without a certificate: %v", err)
	}
	s.take(secretOf(certificate(t, "one")))
	if err := s.Ready(nil); err == nil || err.Error() != errNotTrusted.Error() {
		t.Errorf("before it is trusted: %v", err)
	}
	close(s.trusted)
	if err := s.Ready(nil); err != nil {
		t.Errorf("when it is trusted: %v", err)
	}
}

func TestCovers(t *testing.T) {
	certPEM, _ := certificate(t, "a.svc", "localhost")
	for _, tc := range []struct {
		pem   []byte
		names []string
		want  bool
	}{
		{certPEM, []string{"a.svc"}, true},
		{certPEM, []string{"localhost", "a.svc"}, true},
		{certPEM, []string{"a.svc", "b.svc"}, false},
		{[]byte("no PEM"), nil, false},
		{[]byte("-----BEGIN CERTIFICATE-----\nbm9uZQ==\n-----END CERTIFICATE-----\n"), nil, false},
	} {
		if got := covers(tc.pem, tc.names); got != tc.want {
			t.Errorf("covers(%.20q, %v) = %v, want %v", tc.pem, tc.names, got, tc.want)
		}
	}
}

func TestPrepare(t *testing.T) {
	certPEM, keyPEM := certificate(t, "a.svc")
	key := types.NamespacedName{Namespace: "shipper-system", Name: "shipper-webhook-cert"}
	for sentence, tc := range map[string]struct {
		there *corev1.Secret
		names []string
		want  []string // keys of the data
	}{
		"a secret that is missing is made":         {names: []string{"a.svc"}},
		"an empty one is left to the rotator":      {there: &corev1.Secret{ObjectMeta: secretOf(nil, nil).ObjectMeta}, names: []string{"a.svc"}},
		"a certificate for all names stays":        {secretOf(certPEM, keyPEM), []string{"a.svc"}, []string{"ca.key", certKey, keyKey}},
		"one that lacks a name goes, the CA stays": {secretOf(certPEM, keyPEM), []string{"a.svc", "localhost"}, []string{"ca.key"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := corev1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			builder := fake.NewClientBuilder().WithScheme(scheme)
			if tc.there != nil {
				builder = builder.WithObjects(tc.there)
			}
			c := builder.Build()
			if err := prepare(t.Context(), c, Options{Secret: key, DNSNames: tc.names}); err != nil {
				t.Fatal(err)
			}
			var got corev1.Secret
			if err := c.Get(t.Context(), key, &got); err != nil {
				t.Fatal(err)
			}
			var keys []string
			for _, k := range []string{"ca.key", certKey, keyKey} {
				if _, there := got.Data[k]; there {
					keys = append(keys, k)
				}
			}
			if diff := cmp.Diff(tc.want, keys); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheEndOfTheCertificateIsPublished(t *testing.T) {
	registry := prometheus.NewRegistry()
	var current *tls.Certificate
	if err := register(registry, func() *tls.Certificate { return current }); err != nil {
		t.Fatal(err)
	}
	if err := register(registry, nil); err == nil {
		t.Error("the metric was registered twice")
	}
	compare := func(value string) {
		t.Helper()
		want := "# HELP shipper_webhook_certificate_end_timestamp_seconds When the certificate that is served ends, in seconds since " +
			"1970; 0 while there is none.\n# TYPE shipper_webhook_certificate_end_timestamp_seconds gauge\n" +
			"shipper_webhook_certificate_end_timestamp_seconds " + value + "\n"
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
	}
	compare("0")
	certPEM, keyPEM := certificate(t, "one")
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	current = &pair
	compare(fmt.Sprint(float64(end.Unix())))
}

func TestTheSignIsRaised(t *testing.T) {
	scratch := t.TempDir()
	for range 2 { // the second process does not trust the sign of the first
		s, err := newSign(scratch)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(s.dir, certKey)); !os.IsNotExist(err) {
			t.Errorf("the sign is there already: %v", err)
		}
		s.raise()
		if _, err := os.Stat(filepath.Join(s.dir, certKey)); err != nil {
			t.Error(err)
		}
	}
	if _, err := newSign("/dev/null"); err == nil {
		t.Error("a folder that cannot be written to was taken")
	}
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	for sentence, o := range map[string]Options{
		"an unknown mode":              {Mode: "magic"},
		"files that are not there":     {Mode: Files, Dir: filepath.Join(t.TempDir(), "nowhere")},
		"a certificate without a name": {Mode: Self},
	} {
		if _, err := Setup(t.Context(), nil, o); err == nil {
			t.Errorf("%s was accepted", sentence)
		}
	}
}

func TestOnlyTheOneSecretIsRead(t *testing.T) {
	o := CacheOptions(Options{Secret: types.NamespacedName{Namespace: "a", Name: "b"}})
	got := map[string]string{}
	for namespace, config := range o.Namespaces {
		got[namespace] = config.FieldSelector.String()
	}
	if diff := cmp.Diff(map[string]string{"a": "metadata.name=b"}, got); diff != "" {
		t.Errorf("cache (-want +got):\n%s", diff)
	}
}
