// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// birth is when the certificates of tests are made.
var birth = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

// certificate makes one for names that is valid for a day.
func certificate(t *testing.T, names ...string) (certPEM, keyPEM []byte) {
	t.Helper()
	a := anAuthority(t, birth, 10*24*time.Hour)
	e := edit{}
	if err := e.setServing(aCertificate(t, a, birth.Add(24*time.Hour), names...)); err != nil {
		t.Fatal(err)
	}
	return e[certKey], e[keyKey]
}

func anAuthority(t *testing.T, now time.Time, lifetime time.Duration) *authority {
	t.Helper()
	a, err := newAuthority(now, lifetime, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func aCertificate(t *testing.T, a *authority, end time.Time, names ...string) *tls.Certificate {
	t.Helper()
	pair, err := a.issue(names, end)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func secretOf(certPEM, keyPEM []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shipper-system", Name: "shipper-webhook-cert"},
		Data:       map[string][]byte{certKey: certPEM, keyKey: keyPEM},
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
		t.Errorf("loaded %d certificates, want 2", loaded)
	}
}

func TestSelfIsReadyWhenItIsTrusted(t *testing.T) {
	s := &self{secret: &secret{log: logr.Discard()}, rotation: &rotation{}}
	if err := s.Ready(nil); err == nil || err.Error() != errNoCertificate.Error() {
		t.Errorf("without a certificate: %v", err)
	}
	s.take(secretOf(certificate(t, "one")))
	if err := s.Ready(nil); err == nil || err.Error() != errNotTrusted.Error() {
		t.Errorf("before it is trusted: %v", err)
	}
	s.rotation.ready.Store(true)
	if err := s.Ready(nil); err != nil {
		t.Errorf("when it is trusted: %v", err)
	}
}

func TestCovers(t *testing.T) {
	leaf := aCertificate(t, anAuthority(t, birth, time.Hour), birth.Add(time.Hour), "a.svc", "localhost", "10.0.0.1", "::1").Leaf
	for _, tc := range []struct {
		names []string
		want  bool
	}{
		{[]string{"a.svc"}, true},
		{[]string{"localhost", "a.svc"}, true},
		{[]string{"10.0.0.1", "0:0::1"}, true},
		{[]string{"a.svc", "b.svc"}, false},
		{[]string{"10.0.0.2"}, false},
	} {
		if got := covers(leaf, tc.names); got != tc.want {
			t.Errorf("covers(%v) = %v, want %v", tc.names, got, tc.want)
		}
	}
}

func TestTheEndOfCertificatesIsPublished(t *testing.T) {
	registry := prometheus.NewRegistry()
	var leaf, authority *x509.Certificate
	current := func() (*x509.Certificate, *x509.Certificate) { return leaf, authority }
	if err := register(registry, current); err != nil {
		t.Fatal(err)
	}
	if err := register(registry, current); err == nil {
		t.Error("the metric was registered twice")
	}
	compare := func(samples ...string) {
		t.Helper()
		want := "# HELP shipper_webhook_certificate_not_after_timestamp_seconds Unix time after which the certificate is not valid any " +
			"more. Label certificate: serving is what the webhook serves with, 0 while there is none; authority is the CA that signs it, " +
			"absent if it is not known.\n# TYPE shipper_webhook_certificate_not_after_timestamp_seconds gauge\n"
		for _, sample := range samples {
			want += "shipper_webhook_certificate_not_after_timestamp_seconds" + sample + "\n"
		}
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
	}
	compare(`{certificate="serving"} 0`)
	a := anAuthority(t, birth, 48*time.Hour)
	leaf = aCertificate(t, a, birth.Add(24*time.Hour), "one").Leaf
	compare(`{certificate="serving"} 1.7953056e+09`)
	authority = a.certificate
	compare(`{certificate="authority"} 1.795392e+09`, `{certificate="serving"} 1.7953056e+09`)
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	for sentence, o := range map[string]Options{
		"an unknown mode":              {Mode: "magic"},
		"files that are not there":     {Mode: Files, Dir: filepath.Join(t.TempDir(), "nowhere")},
		"a certificate without a name": {Mode: Self},
		"a life too short":             {Mode: Self, DNSNames: []string{"one"}, Lifetimes: Lifetimes{Certificate: time.Second}},
	} {
		if _, err := Setup(t.Context(), nil, o); err == nil {
			t.Errorf("%s was accepted", sentence)
		}
	}
}

func TestNothingElseIsRead(t *testing.T) {
	got := map[string]string{}
	o := CacheOptions(Options{Secret: types.NamespacedName{Namespace: "a", Name: "b"}, Configurations: "c"})
	for object, by := range o {
		kind := fmt.Sprintf("%T", object)
		if by.Field != nil {
			got[kind] = by.Field.String()
		}
		for namespace, config := range by.Namespaces {
			got[kind] = namespace + " " + config.FieldSelector.String()
		}
	}
	want := map[string]string{
		"*v1.Secret":                         "a metadata.name=b",
		"*v1.ValidatingWebhookConfiguration": "metadata.name=c",
		"*v1.MutatingWebhookConfiguration":   "metadata.name=c",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cache (-want +got):\n%s", diff)
	}
}
