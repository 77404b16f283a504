// SPDX-License-Identifier: Apache-2.0

package health

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"shipper.dev/shipper/manifests"
)

// host is where API servers ask the webhook.
const host = "shipper-webhook.shipper-system.svc"

// issued is an authority, and what it has signed for host.
type issued struct{ authority, certificate, key []byte }

// issue makes an authority for ten years and a certificate of it for ninety days, good from begin on.
func issue(t *testing.T, begin time.Time) issued {
	t.Helper()
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	sign := func(template, parent *x509.Certificate, public any, by *ecdsa.PrivateKey) []byte {
		raw, err := x509.CreateCertificate(rand.Reader, template, parent, public, by)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: begin, NotAfter: begin.AddDate(10, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{host}, NotBefore: begin, NotAfter: begin.AddDate(0, 0, 90),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	caKey, leafKey := key(), key()
	der, err := x509.MarshalECPrivateKey(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	return issued{
		sign(ca, ca, caKey.Public(), caKey), sign(leaf, ca, leafKey.Public(), caKey),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
	}
}

func TestCertificateFindings(t *testing.T) {
	ours, others := issue(t, now), issue(t, now)
	secret := &corev1.Secret{Data: map[string][]byte{"tls.crt": ours.certificate, "tls.key": ours.key, "ca.crt": ours.authority}}
	trusting := []webhook{
		{name: "a", host: host, bundle: ours.authority}, {name: "b", host: host, bundle: append(others.authority, ours.authority...)},
	}
	const day = 24 * time.Hour
	for sentence, tc := range map[string]struct {
		secret   *corev1.Secret
		webhooks []webhook
		now      time.Time
		want     []string
	}{
		"it is trusted by all":      {secret, trusting, now.Add(day), nil},
		"it is about to be renewed": {secret, trusting, now.Add(67 * day), nil},
		"it was not renewed": {
			secret, trusting, now.Add(68 * day), []string{"warning: the certificate ends at 2027-02-19T08:00:00Z and was not renewed"},
		},
		"it has ended": {secret, trusting, now.Add(90 * day), []string{"BROKEN: the certificate has ended at 2027-02-19T08:00:00Z"}},
		"it is not good yet": {
			secret, trusting, now.Add(-day),
			[]string{
				"BROKEN: the certificate is good from 2026-11-21T08:00:00Z on",
				"BROKEN: the authority that signs it is good from 2026-11-21T08:00:00Z on",
			},
		},
		"another authority is trusted": {
			secret, append(trusting, webhook{name: "c", host: host, bundle: others.authority}), now.Add(day),
			[]string{"BROKEN: the caBundle of c does not accept the certificate of the Secret: x509: certificate signed by unknown authority"},
		},
		"it is for another host": {
			secret, []webhook{{name: "a", host: "localhost", bundle: ours.authority}}, now.Add(day),
			[]string{
				"BROKEN: the caBundle of a does not accept the certificate of the Secret: " +
					"x509: certificate is valid for " + host + ", not localhost",
			},
		},
		"no CA bundle": {
			secret, []webhook{{name: "a", host: host}, {name: "b", host: host}}, now.Add(day), []string{"BROKEN: no caBundle is in a, b"},
		},
		"the webhook never ran": {
			&corev1.Secret{}, []webhook{{name: "a", host: host}}, now, []string{"BROKEN: no caBundle is in a"},
		},
		"the webhook reads files, or lost it": {nil, trusting, now, []string{"warning: the Secret has no certificate"}},
		"the key is another's": {
			&corev1.Secret{Data: map[string][]byte{"tls.crt": ours.certificate, "tls.key": others.key}}, trusting, now.Add(day),
			[]string{"BROKEN: the Secret has no certificate that works: tls: private key does not match public key"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := texts(certificateFindings(tc.secret, tc.webhooks, tc.now))
			for i := range got {
				got[i], _, _ = strings.Cut(got[i], " (possibly") // what Go says more
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAnAuthorityMayBeRenewedLate(t *testing.T) {
	c := &x509.Certificate{NotBefore: now, NotAfter: now.AddDate(10, 0, 0)}
	if got := ending("the authority", c, c.NotAfter.AddDate(0, 0, -89)); got != nil {
		t.Errorf("cert-manager is renewing it: %v", got)
	}
	if got := ending("the authority", c, c.NotAfter.AddDate(0, 0, -59)); len(got) != 1 || got[0].Level != levelWarning {
		t.Errorf("it was not renewed: %v", got)
	}
}

func TestWebhookFindings(t *testing.T) {
	want := object(t, manifests.Webhook, "MutatingWebhookConfiguration", "shipper.booking.com")
	fewer, lenient := want.DeepCopy(), want.DeepCopy()
	fewer.Object["webhooks"] = fewer.Object["webhooks"].([]any)[1:]
	lenient.Object["webhooks"].([]any)[2].(map[string]any)["failurePolicy"] = "Ignore"
	for sentence, tc := range map[string]struct {
		live *unstructured.Unstructured
		want []string
	}{
		"it is as it should be": {want, nil},
		"it is missing":         {nil, []string{"BROKEN: there is no MutatingWebhookConfiguration shipper.booking.com"}},
		"one is missing": {
			fewer, []string{"BROKEN: its MutatingWebhookConfiguration lacks mutate.application.shipper.booking.com"},
		},
		"one webhook is lenient": {lenient, []string{"warning: failurePolicy is Ignore for mutate.approval.shipper.booking.com"}},
	} {
		if diff := cmp.Diff(tc.want, texts(webhookFindings(want, tc.live))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", sentence, diff)
		}
	}
	collected := object(t, manifests.Webhook, "ValidatingWebhookConfiguration", "shipper.booking.com")
	if got := texts(webhookFindings(collected, collected)); got != nil {
		t.Errorf("webhooks that are Ignore in the manifests are reported: %v", got)
	}
}

func TestWebhooksAreAskedAtTheirHost(t *testing.T) {
	configuration := &unstructured.Unstructured{Object: map[string]any{"webhooks": []any{
		map[string]any{"name": "a", "failurePolicy": "Fail", "clientConfig": map[string]any{
			"service": map[string]any{"name": "shipper-webhook", "namespace": "shipper-system"}, "caBundle": "Q0E=",
		}},
		map[string]any{"name": "b", "failurePolicy": "Ignore", "clientConfig": map[string]any{"url": "https://localhost:9443/validate"}},
	}}}
	want := []webhook{{"a", "Fail", host, []byte("CA"), ""}, {"b", "Ignore", "localhost", []byte{}, "/validate"}}
	if diff := cmp.Diff(want, webhooksOf(configuration), cmp.AllowUnexported(webhook{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestFindingsAboutTheCertificateOfCertManager(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	of := func(notAfter *metav1.Time, status cmmeta.ConditionStatus) *certmanagerv1.Certificate {
		c := &certmanagerv1.Certificate{ObjectMeta: metav1.ObjectMeta{Namespace: "shipper-system", Name: "shipper-webhook"}}
		c.Status.NotAfter = notAfter
		c.Status.Conditions = []certmanagerv1.CertificateCondition{{
			Type: certmanagerv1.CertificateConditionReady, Status: status, Reason: "Pending", Message: "waiting",
		}}
		return c
	}
	later, earlier := &metav1.Time{Time: now.Add(time.Hour)}, &metav1.Time{Time: now.Add(-time.Hour)}
	const explained = "the Certificate shipper-system/shipper-webhook of cert-manager: it is not ready (Pending): waiting"
	for sentence, tc := range map[string]struct {
		certificate *certmanagerv1.Certificate
		want        []string
	}{
		"ready":                     {of(later, cmmeta.ConditionTrue), nil},
		"not ready and still valid": {of(later, cmmeta.ConditionFalse), []string{"warning " + explained}},
		"not ready and ended":       {of(earlier, cmmeta.ConditionFalse), []string{"BROKEN " + explained}},
		"never issued":              {of(nil, cmmeta.ConditionFalse), []string{"warning " + explained}},
		"it was deleted": {nil, []string{
			"BROKEN there is no Certificate shipper-system/shipper-webhook of cert-manager, whose CA the webhook configurations are to get",
		}},
	} {
		var got []string
		for _, f := range certManagerFindings("shipper-system/shipper-webhook", tc.certificate, now) {
			got = append(got, string(f.Level)+" "+f.What)
			if f.Why == "" || f.Do == "" {
				t.Errorf("%s: the finding lacks why or what to do: %+v", sentence, f)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}

func TestAWebhookWhoseCertificateNobodyRenewsIsReported(t *testing.T) {
	deployment := func(args ...string) *appsv1.Deployment {
		d := &appsv1.Deployment{}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "webhook", Args: args}}
		return d
	}
	for sentence, tc := range map[string]struct {
		deployment *appsv1.Deployment
		reported   bool
	}{
		"Shipper runs elsewhere":                      {nil, false},
		"the webhook makes its certificates":          {deployment("--addr=:9443"), false},
		"it waits for cert-manager":                   {deployment("--addr=:9443", "--certs=cert-manager"), true},
		"it waits for cert-manager, in two arguments": {deployment("--certs", "cert-manager"), true},
		"it reads files that another program writes":  {deployment("--certs=files"), false},
	} {
		if got := unrenewedFindings(tc.deployment); (len(got) == 1) != tc.reported {
			t.Errorf("%s: %+v", sentence, got)
		}
	}
}

func TestRequestsThatAreNotSharedOutAreReported(t *testing.T) {
	schema := func(precedence int64, dangling string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{
			"kind": "FlowSchema", "metadata": map[string]any{"name": "shipper"}, "spec": map[string]any{"matchingPrecedence": precedence},
		}}
		if dangling != "" {
			o.Object["status"] = map[string]any{"conditions": []any{
				map[string]any{"type": "Dangling", "status": dangling, "message": "no priority level"},
			}}
		}
		return o
	}
	want, err := manifests.Object(manifests.Deploy, "FlowSchema", "shipper")
	if err != nil {
		t.Fatal(err)
	}
	for sentence, tc := range map[string]struct {
		live *unstructured.Unstructured
		want string
	}{
		"as it should be":                    {schema(1000, "False"), ""},
		"it is missing":                      {nil, "there is no FlowSchema shipper"},
		"it comes after Kubernetes' own":     {schema(9999, "False"), "FlowSchema shipper has matchingPrecedence 9999 instead of 1000"},
		"its priority level is missing":      {schema(1000, "True"), "FlowSchema shipper does not work: no priority level"},
		"the API server has not seen it yet": {schema(1000, ""), ""},
	} {
		got := ""
		for _, f := range fairnessFindings(want, tc.live) {
			got += f.What
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", sentence, got, tc.want)
		}
	}
}
