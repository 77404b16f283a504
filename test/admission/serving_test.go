// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/pod"
)

func TestTheWebhookIsObserved(t *testing.T) {
	for path, port := range map[string]int{"/healthz": gate.healthPort, "/readyz": gate.healthPort, "/metrics": gate.metricsPort} {
		if code := gate.get(t.Context(), port, path); code != http.StatusOK {
			t.Errorf("%s: %d", path, code)
		}
	}
}

// another starts a second webhook, with other flags, which the API server does not call.
func another(t *testing.T, name string, flags ...string) *webhook {
	t.Helper()
	port, err := pod.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	w := &webhook{name: name, bin: gate.bin, kubeconfig: gate.kubeconfig, dir: gate.dir, port: port, flags: flags}
	ctx, cancel := context.WithTimeout(t.Context(), env.Patience)
	defer cancel()
	if err := w.start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.process.Process.Kill() })
	return w
}

// served returns the certificate that w serves.
func served(t *testing.T, w *webhook) *x509.Certificate {
	t.Helper()
	//nolint:gosec // the test itself checks the certificate
	connection, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", w.port), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if v := connection.ConnectionState().Version; v != tls.VersionTLS13 {
		t.Errorf("%s speaks %s", w.name, tls.VersionName(v))
	}
	return connection.ConnectionState().PeerCertificates[0]
}

func TestReplicasServeTheSameCertificate(t *testing.T) {
	t.Parallel()
	want := served(t, gate)
	for name, flags := range map[string][]string{"replica": nil, "replica-cert-manager": {"--certs=cert-manager"}} {
		if got := served(t, another(t, name, flags...)); !got.Equal(want) {
			t.Errorf("%s serves the certificate %s, want %s", name, got.SerialNumber, want.SerialNumber)
		}
	}
}

func TestCertificatesFromFiles(t *testing.T) {
	t.Parallel()
	var secret corev1.Secret
	key := types.NamespacedName{Namespace: "shipper-system", Name: "shipper-webhook-cert"}
	if err := admin.Get(t.Context(), key, &secret); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"tls.crt", "tls.key"} {
		if err := os.WriteFile(filepath.Join(dir, name), secret.Data[name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := served(t, another(t, "replica-files", "--certs=files", "--cert-dir", dir)); !got.Equal(served(t, gate)) {
		t.Errorf("the certificate %s is served, not that in the files", got.SerialNumber)
	}
}

// asks posts a review to w, over TLS of at most a version and with these certificates, and returns the response's code.
func asks(t *testing.T, w *webhook, most uint16, certificates ...tls.Certificate) (int, error) {
	t.Helper()
	//nolint:gosec // the test does not check the server's certificate
	config := &tls.Config{InsecureSkipVerify: true, MaxVersion: most, Certificates: certificates}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"x","operation":"DELETE","oldObject":{}}}`
	where := fmt.Sprintf("https://127.0.0.1:%d%s", w.port, secretPath(t, "/validate-cluster"))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, where, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return response.StatusCode, nil
}

func TestTheWebhookSpeaksTLS13Only(t *testing.T) {
	t.Parallel()
	if code, err := asks(t, gate, tls.VersionTLS13); code != http.StatusOK {
		t.Errorf("over TLS 1.3: %d, %v", code, err)
	}
	if code, err := asks(t, gate, tls.VersionTLS12); err == nil || !strings.Contains(err.Error(), "protocol version not supported") {
		t.Errorf("over TLS 1.2: %d, %v", code, err)
	}
}

func TestOnlyKnownClientsAreAnswered(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, management.Config.CAData, 0o600); err != nil {
		t.Fatal(err)
	}
	known, err := tls.X509KeyPair(management.Config.CertData, management.Config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	w := another(t, "replica-particular", "--client-ca-file", file)
	if code, err := asks(t, w, tls.VersionTLS13, known); code != http.StatusOK {
		t.Errorf("with a certificate: %d, %v", code, err)
	}
	if code, err := asks(t, w, tls.VersionTLS13); code != http.StatusUnauthorized {
		t.Errorf("without: %d, %v", code, err)
	}
	w = another(t, "replica-strict", "--client-ca-file", file, "--client-names", "kube-apiserver")
	if code, err := asks(t, w, tls.VersionTLS13, known); code != http.StatusUnauthorized {
		t.Errorf("with another name: %d, %v", code, err)
	}
}

// A webhook that shuts down fails its readiness probe before it closes its port, so that the API server calls another
// replica.
func TestShuttingDownIsToldFirst(t *testing.T) {
	t.Parallel()
	w := another(t, "replica-leaving", "--shutdown-delay=5s")
	if err := w.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, "readiness to go", func(ctx context.Context) error {
		if code := w.get(ctx, w.healthPort, "/readyz"); code != http.StatusInternalServerError {
			return fmt.Errorf("/readyz says %d", code)
		}
		return nil
	})
	served(t, w)
	select {
	case err := <-w.ended:
		if err != nil {
			t.Errorf("it ended with %v: %s", err, w.said())
		}
	case <-time.After(env.Patience):
		t.Error("it did not end")
	}
}
