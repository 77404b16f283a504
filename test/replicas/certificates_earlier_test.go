// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// plant puts an authority and a certificate into the Secret, and the authority into the webhook configurations, as a
// Shipper of before would have: with RSA keys.
func plant(t *testing.T, authorityEnd, certificateEnd time.Time) {
	t.Helper()
	caKey, key := rsaKey(t), rsaKey(t)
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "shipper-ca", Organization: []string{"shipper"}},
		NotBefore: authorityEnd.AddDate(-10, 0, 0), NotAfter: authorityEnd,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign,
		IsCA:     true, BasicConstraintsValid: true,
	}
	ca := sign(t, template, template, &caKey.PublicKey, caKey)
	leaf := sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "localhost"}, NotBefore: certificateEnd.AddDate(-1, 0, 0), NotAfter: certificateEnd,
		DNSNames: []string{"shipper-webhook.shipper-system.svc", "shipper-webhook.shipper-system.svc.cluster.local", "localhost"},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}, ca, &key.PublicKey, caKey)
	s, err := certificateSecret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	caPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw})
	s.Data = map[string][]byte{
		"ca.crt": caPEM, "ca.key": private(caKey),
		"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw}), "tls.key": private(key),
	}
	if err := world.Management.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	inject(t, caPEM)
}

// inject writes the CA bundle of all webhooks.
func inject(t *testing.T, bundle []byte) {
	t.Helper()
	name := metav1.ObjectMeta{Name: shipper.GroupName}
	for o, webhooks := range map[client.Object]int{
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: name}: 7,
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: name}:   3,
	} {
		var patch []map[string]string
		for i := range webhooks {
			patch = append(patch, map[string]string{
				"op": "add", "path": fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i), "value": base64.StdEncoding.EncodeToString(bundle),
			})
		}
		text, err := json.Marshal(patch)
		if err != nil {
			t.Fatal(err)
		}
		if err := world.Management.Patch(t.Context(), o, client.RawPatch(types.JSONPatchType, text)); err != nil {
			t.Fatal(err)
		}
	}
}

func rsaKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func private(key *rsa.PrivateKey) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
}

func sign(t *testing.T, template, parent *x509.Certificate, public *rsa.PublicKey, key *rsa.PrivateKey) *x509.Certificate {
	t.Helper()
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// parse reads certificates.
func parse(text []byte) []*x509.Certificate {
	var out []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return out
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, c)
		}
	}
}

// take takes keys out of the Secret.
func take(ctx context.Context, keys ...string) error {
	var patch []map[string]string
	for _, key := range keys {
		patch = append(patch, map[string]string{"op": "remove", "path": "/data/" + key})
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	s, err := certificateSecret(ctx)
	if err != nil {
		return err
	}
	return world.Management.Patch(ctx, s, client.RawPatch(types.JSONPatchType, text))
}
