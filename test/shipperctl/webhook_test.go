// SPDX-License-Identifier: Apache-2.0

package shipperctl

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/certs/reviewpath"
	"shipper.dev/shipper/cmd/shipperctl/health"
)

// startWebhook starts a webhook that refuses what shipperctl probes with and admits all else. test/e2e does the same with Shipper's.
func startWebhook(t *testing.T, certificate map[string][]byte) *httptest.Server {
	t.Helper()
	pair, err := tls.X509KeyPair(certificate["tls.crt"], certificate["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil || review.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: review.Request.Name != health.ProbeName ||
			strings.HasPrefix(r.URL.Path, "/mutate-") && r.URL.Path != "/mutate-application"}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// address has the webhooks of the management cluster called at a URL, or through the Service again, with a caBundle.
func address(t *testing.T, base string, bundle []byte) {
	t.Helper()
	c := management(t)
	point := func(name string, to *admissionregistrationv1.WebhookClientConfig) {
		path := reviewpath.HookOf(name)
		if to.CABundle = bundle; base != "" {
			url := base + path
			to.Service, to.URL = nil, &url
			return
		}
		to.URL = nil
		to.Service = &admissionregistrationv1.ServiceReference{Namespace: "shipper-system", Name: "shipper-webhook", Path: &path}
	}
	v := get(t, c, &admissionregistrationv1.ValidatingWebhookConfiguration{}, "", shipper.GroupName)
	for i := range v.Webhooks {
		point(v.Webhooks[i].Name, &v.Webhooks[i].ClientConfig)
	}
	m := get(t, c, &admissionregistrationv1.MutatingWebhookConfiguration{}, "", shipper.GroupName)
	for i := range m.Webhooks {
		point(m.Webhooks[i].Name, &m.Webhooks[i].ClientConfig)
	}
	for _, o := range []client.Object{v, m} {
		if err := c.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// judged waits until the API server calls the webhooks as configured now: it learns of them from a watch.
func judged(t *testing.T) {
	t.Helper()
	eventually(t, func() string {
		if err := health.ProbeError(health.ProbeWebhooks(t.Context(), management(t))); err != nil {
			return err.Error()
		}
		return ""
	})
}
