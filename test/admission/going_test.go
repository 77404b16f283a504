// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
)

// differs is nil when got is what is wanted.
func differs[T any](want, got T) error {
	if diff := cmp.Diff(want, got); diff != "" {
		return errors.New("(-want +got):\n" + diff)
	}
	return nil
}

// gone is nil when o is not there.
func gone(ctx context.Context, o client.Object) error {
	err := admin.Get(ctx, client.ObjectKeyFromObject(o), o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%T %s is still there (%w)", o, o.GetName(), err)
}

func TestGarbageIsCollectedUnderABlock(t *testing.T) {
	r := rollOut(t, namespace(t))
	b := block(t, r.app.Namespace)
	checkRefused(t, as(t, "dev").Delete(t.Context(), r.app.DeepCopy()), refused{403, "rollouts blocked by"})
	ask.Overriding(b.Namespace + "/" + b.Name)(r.app) // the Release does not override
	if err := admin.Update(t.Context(), r.app); err != nil {
		t.Fatal(err)
	}
	if err := as(t, "dev").Delete(t.Context(), r.app); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{r.app, r.rel, r.capacity, r.traffic, r.install} {
		eventually(t, "what the Application owned to be collected", func(ctx context.Context) error { return gone(ctx, o) })
	}
}

func TestANamespaceGoesUnderABlock(t *testing.T) {
	ns := namespace(t)
	r := rollOut(t, ns)
	dns := block(t, shipper.GlobalBlocksNamespace)
	checkRefused(t, as(t, "dev").Delete(t.Context(), r.rel.DeepCopy(), client.DryRunAll), refused{403, dns.Name})
	o := &corev1.Namespace{}
	o.Name = ns
	if err := admin.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace to go", func(ctx context.Context) error { return gone(ctx, o) })
}

func TestTheGateIsClosedWhileTheWebhookIsDown(t *testing.T) {
	ns, repo := namespace(t), startRepository(t, "0.0.1")
	if err := gate.stop(); err != nil {
		t.Fatalf("stopping the webhook: %v", err)
	}
	t.Cleanup(func() {
		if err := gate.start(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := admin.Create(context.Background(), application(ns, repo)); err != nil {
			t.Errorf("the webhook is back, and still: %v", err)
		}
	})
	err := admin.Create(t.Context(), application(ns, repo))
	checkRefused(t, err, refused{500, "failed calling webhook"})
	create(t, admin, application(shipper.SystemNamespace, repo)) // where Shipper is mended nobody is asked
	app := application(ns, repo)
	app.Status.History = []string{"x"}
	if err := admin.Status().Update(t.Context(), app); !apierrors.IsNotFound(err) {
		t.Errorf("a report was judged: %v", err)
	}
}

func TestCertificatesRotate(t *testing.T) {
	key := types.NamespacedName{Namespace: shipper.SystemNamespace, Name: "shipper-webhook-cert"}
	var secret corev1.Secret
	if err := admin.Get(t.Context(), key, &secret); err != nil {
		t.Fatal(err)
	}
	before := secret.DeepCopy()
	secret.Data = nil // as if it had been lost; the authority goes with it
	if err := admin.Update(t.Context(), &secret); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another certificate", func(ctx context.Context) error {
		if err := admin.Get(ctx, key, &secret); err != nil {
			return err
		}
		if len(secret.Data["tls.crt"]) == 0 || string(secret.Data["tls.crt"]) == string(before.Data["tls.crt"]) {
			return errors.New("it is not there yet")
		}
		return nil
	})
	block, _ := pem.Decode(secret.Data["tls.crt"])
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"shipper-webhook.shipper-system.svc", "shipper-webhook.shipper-system.svc.cluster.local", "localhost"}
	if diff := cmp.Diff(want, certificate.DNSNames); diff != "" {
		t.Errorf("names of the certificate (-want +got):\n%s", diff)
	}
	ns, repo := namespace(t), startRepository(t, "0.0.1")
	eventually(t, "the API server to trust it", func(ctx context.Context) error {
		return admin.Create(ctx, application(ns, repo), client.DryRunAll)
	})
}

func TestTheWebhookIsObserved(t *testing.T) {
	for path, port := range map[string]int{"/healthz": gate.healthPort, "/readyz": gate.healthPort, "/metrics": gate.metricsPort} {
		if code := gate.get(t.Context(), port, path); code != http.StatusOK {
			t.Errorf("%s: %d", path, code)
		}
	}
}
