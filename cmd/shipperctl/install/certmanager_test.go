// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/certs"
)

func TestTheCertificateHasTheNamesByWhichTheWebhookIsCalled(t *testing.T) {
	type names struct {
		Namespace string
		DNS, IPs  []string
	}
	for sentence, tc := range map[string]struct {
		namespace, url string
		want           names
	}{
		"the usual Service": {"shipper-system", "", names{"shipper-system",
			[]string{"shipper-webhook.shipper-system.svc", "shipper-webhook.shipper-system.svc.cluster.local"}, nil}},
		"the Service in another namespace": {"delivery", "", names{"delivery",
			[]string{"shipper-webhook.delivery.svc", "shipper-webhook.delivery.svc.cluster.local"}, nil}},
		"a URL with a host": {"shipper-system", "https://shipper.example.com:9443", names{"shipper-system",
			[]string{"shipper.example.com"}, nil}},
		"a URL with an IP address": {"shipper-system", "https://[::1]:9443", names{"shipper-system", nil, []string{"::1"}}},
	} {
		url, err := ParseWebhookURL(tc.url)
		if err != nil {
			t.Fatal(err)
		}
		m := &Management{Namespace: tc.namespace, WebhookURL: url, Certificates: certs.CertManager}
		objects, err := m.certManagerObjects()
		if err != nil {
			t.Fatal(err)
		}
		var got names
		for _, o := range objects {
			if o.GetNamespace() != tc.namespace {
				t.Errorf("%s: %s is in namespace %s", sentence, o.GetName(), o.GetNamespace())
			}
			if c, is := o.(*certmanagerv1.Certificate); is && c.Name == certs.CertificateName {
				got = names{c.Namespace, c.Spec.DNSNames, c.Spec.IPAddresses}
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}

func TestModesOfCertificatesThatSetupKnows(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "self": "", "cert-manager": "", "files": `the mode of certificates is "files": use self or cert-manager`,
	} {
		_, err := ParseCertificates(text)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
