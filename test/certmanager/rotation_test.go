// SPDX-License-Identifier: Apache-2.0

package certmanager

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	apiutil "github.com/cert-manager/cert-manager/pkg/api/util"
	cmapi "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/load"
)

type clientConfig = admissionv1.WebhookClientConfig

// perSecond is how many writes are asked for.
const perSecond = 100

// configurations are the two webhook configurations, and how the API server asks each webhook in them.
func configurations(ctx context.Context) ([]client.Object, []*clientConfig, error) {
	key := client.ObjectKey{Name: shipper.GroupName}
	validating, mutating := &admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfiguration{}
	if err := errors.Join(admin.Get(ctx, key, validating), admin.Get(ctx, key, mutating)); err != nil {
		return nil, nil, err
	}
	var all []*clientConfig
	for i := range validating.Webhooks {
		all = append(all, &validating.Webhooks[i].ClientConfig)
	}
	for i := range mutating.Webhooks {
		all = append(all, &mutating.Webhooks[i].ClientConfig)
	}
	return []client.Object{validating, mutating}, all, nil
}

// eachWebhook changes how the API server asks.
func eachWebhook(ctx context.Context, change func(*clientConfig)) error {
	objects, all, err := configurations(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		change(c)
	}
	for _, o := range objects {
		if err := admin.Update(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// get reads a certificate out of a Secret.
func get(ctx context.Context, secret, key string) (*x509.Certificate, error) {
	found := &corev1.Secret{}
	if err := admin.Get(ctx, client.ObjectKey{Namespace: "shipper-system", Name: secret}, found); err != nil {
		return nil, err
	}
	block, _ := pem.Decode(found.Data[key])
	if block == nil {
		return nil, fmt.Errorf("secret %s has no %s", secret, key)
	}
	return x509.ParseCertificate(block.Bytes)
}

// trusted reports whether all webhooks trust c.
func trusted(ctx context.Context, c *x509.Certificate) error {
	_, all, err := configurations(ctx)
	if err != nil {
		return err
	}
	for i, config := range all {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(config.CABundle)
		if _, err := c.Verify(x509.VerifyOptions{Roots: roots}); err != nil {
			return fmt.Errorf("webhook %d: %w", i, err)
		}
	}
	return nil
}

// renew does what `cmctl renew` does, and waits for the certificate to be another one.
func renew(t *testing.T, name string) (before, after *x509.Certificate) {
	t.Helper()
	before, err := get(t.Context(), secretOf(name), "tls.crt")
	if err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, "the renewal of "+name+" to be asked for", func(ctx context.Context) error {
		found := &cmapi.Certificate{}
		if err := admin.Get(ctx, client.ObjectKey{Namespace: "shipper-system", Name: name}, found); err != nil {
			return err
		}
		apiutil.SetCertificateCondition(found, found.Generation, cmapi.CertificateConditionIssuing, cmmeta.ConditionTrue,
			"ManuallyTriggered", "asked for by a test")
		return admin.Status().Update(ctx, found)
	})
	env.Eventually(t, "another certificate "+name, func(ctx context.Context) (err error) {
		if after, err = get(ctx, secretOf(name), "tls.crt"); err == nil && after.Equal(before) {
			return errors.New("it is as before")
		}
		return err
	})
	return before, after
}

// secretOf is where a Certificate of the component is.
func secretOf(certificate string) string {
	if certificate == "shipper-webhook" {
		return "shipper-webhook-cert"
	}
	return certificate
}

func TestCertManagerIssuesInjectsAndRotates(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	var ending atomic.Bool
	t.Cleanup(func() { ending.Store(true) })
	explainedWithoutCertManager(t)
	err := runCertManager(ctx, management, func(err error) {
		if !ending.Load() {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	startReplicas(t)
	issued(t)
	underLoad(t, func() {
		renew(t, "shipper-webhook")
		renew(t, "shipper-webhook-ca")
		before, after := renew(t, "shipper-webhook")
		if before.NotAfter.After(after.NotAfter) {
			t.Errorf("the new certificate ends %s, before the old one, %s", after.NotAfter, before.NotAfter)
		}
	})
	shipperctlSetsUpCertManager(t)
}

// issued fails unless there is a certificate as manifests/certs/cert-manager wants it, which the API server trusts.
func issued(t *testing.T) {
	t.Helper()
	var leaf *x509.Certificate
	env.Eventually(t, "a certificate that is trusted", func(ctx context.Context) (err error) {
		if leaf, err = get(ctx, "shipper-webhook-cert", "tls.crt"); err != nil {
			return err
		}
		return trusted(ctx, leaf)
	})
	want := []string{"shipper-webhook.shipper-system.svc", "shipper-webhook.shipper-system.svc.cluster.local"}
	if diff := cmp.Diff(want, leaf.DNSNames); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if life := leaf.NotAfter.Sub(leaf.NotBefore); life != 90*24*time.Hour {
		t.Errorf("it lives for %s", life)
	}
	if !slices.Equal(leaf.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) {
		t.Errorf("it is for %v", leaf.ExtKeyUsage)
	}
	env.Eventually(t, "both certificates to be Ready", func(ctx context.Context) error {
		var all cmapi.CertificateList
		if err := admin.List(ctx, &all, client.InNamespace("shipper-system")); err != nil {
			return err
		}
		for _, c := range all.Items {
			ready := cmapi.CertificateCondition{Type: cmapi.CertificateConditionReady, Status: cmmeta.ConditionTrue}
			if !apiutil.CertificateHasCondition(&c, ready) {
				return fmt.Errorf("%s is not", c.Name)
			}
		}
		if len(all.Items) != 2 {
			return fmt.Errorf("there are %d", len(all.Items))
		}
		return nil
	})
}

// underLoad fails when any write does while do runs. The API server connects again all the time, and so checks what is
// served.
func underLoad(t *testing.T, do func()) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "certs-"}}
	if err := admin.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	writes := load.Start(t.Context(), admin, ns.Name, repository.URL, perSecond)
	connecting, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for connecting.Err() == nil {
			<-tick.C
			writes.Pause(service.Renew)
		}
	}()
	defer func() {
		stop()
		<-ended
		result := writes.Stop()
		t.Logf("%d requests, the slowest took %s; connections %v", result.Requests, result.Longest, service.Taken())
		for i, f := range result.Failed[:min(len(result.Failed), 10)] {
			t.Errorf("failure %d of %d: %s", i+1, len(result.Failed), f)
		}
		if result.Requests < perSecond {
			t.Errorf("%d requests are too few", result.Requests)
		}
	}()
	do()
	env.Eventually(t, "a second of writes with what there is now", func(context.Context) error {
		enough := writes.SoFar().Requests
		if enough < 2*perSecond {
			return fmt.Errorf("%d so far", enough)
		}
		return nil
	})
}

// startReplicas starts both webhooks, which wait for their certificate.
func startReplicas(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), env.Patience)
	defer cancel()
	for _, r := range replicas {
		t.Cleanup(func() {
			if t.Failed() && r.Webhook != nil {
				t.Logf("%s", r.Webhook.Tail())
			}
			if r.Webhook != nil {
				if err := r.Webhook.Stop(); err != nil {
					t.Error(err)
				}
			}
		})
		if err := r.StartWebhook(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
