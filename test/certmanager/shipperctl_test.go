// SPDX-License-Identifier: Apache-2.0

package certmanager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	cmapi "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/certs"
	"shipper.dev/shipper/cmd/shipperctl/health"
	"shipper.dev/shipper/cmd/shipperctl/install"
	"shipper.dev/shipper/test/env"
)

// setup is the set-up of `shipperctl clusters setup management --certificates mode`, which prints to out.
func setup(t *testing.T, mode certs.Mode, out io.Writer) *install.Management {
	t.Helper()
	c, err := install.NewClient(management.Config)
	if err != nil {
		t.Fatal(err)
	}
	return &install.Management{
		Client: c, Report: install.NewReport(out), Namespace: shipper.SystemNamespace, GlobalBlocksNamespace: shipper.GlobalBlocksNamespace,
		ServiceAccount: shipper.ManagementServiceAccount, Certificates: mode, Patience: time.Minute, Clock: clock.RealClock{},
	}
}

// setUpBy runs `shipperctl clusters setup management --certificates mode`, and returns what it prints about cert-manager.
func setUpBy(t *testing.T, mode certs.Mode) []string {
	t.Helper()
	var out bytes.Buffer
	m := setup(t, mode, &out)
	if err := m.Setup(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "cert-manager") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// findings are what `shipperctl doctor` says about the certificate.
func findings(ctx context.Context) (string, error) {
	d, err := discovery.NewDiscoveryClientForConfig(management.Config)
	if err != nil {
		return "", err
	}
	f := &health.Fleet{
		Client: admin, Discovery: d, Namespace: shipper.SystemNamespace,
		ServiceAccount: shipper.ManagementServiceAccount, Clock: clock.RealClock{},
	}
	var out []string
	for _, check := range f.Examine(ctx) {
		if check.Title != "certificate" {
			continue
		}
		for _, found := range check.Findings {
			out = append(out, string(found.Level)+": "+found.What)
		}
	}
	return strings.Join(out, "\n"), nil
}

func shipperctlSetsUpCertManager(t *testing.T) {
	want := []string{
		"Deleting the Certificate shipper-webhook of cert-manager... done",
		"Deleting the Issuer shipper-self-signed of cert-manager... done",
		"Deleting the Certificate shipper-webhook-ca of cert-manager... done",
		"Deleting the Issuer shipper-webhook-ca of cert-manager... done",
		"The webhook still runs with --certs=cert-manager: its certificate is not renewed until it runs without that",
	}
	if diff := cmp.Diff(want, setUpBy(t, certs.Self)); diff != "" {
		t.Errorf("back to certificates of the webhook's own (-want +got):\n%s", diff)
	}
	objects, _, err := configurations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if injected := o.GetAnnotations()[cmapi.WantInjectAnnotation]; injected != "" {
			t.Errorf("%T gets the CA of %s", o, injected)
		}
	}
	for _, name := range []string{"shipper-webhook-cert", "shipper-webhook-ca"} { // no certificate is left
		secret := &corev1.Secret{}
		secret.Namespace, secret.Name = shipper.SystemNamespace, name
		if err := admin.Delete(t.Context(), secret); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	want = []string{
		"Creating the Certificate shipper-webhook of cert-manager... done",
		"Creating the Issuer shipper-self-signed of cert-manager... done",
		"Creating the Certificate shipper-webhook-ca of cert-manager... done",
		"Creating the Issuer shipper-webhook-ca of cert-manager... done",
		"Waiting for cert-manager to issue the certificate... done",
	}
	if diff := cmp.Diff(want, setUpBy(t, certs.CertManager)); diff != "" {
		t.Errorf("with cert-manager (-want +got):\n%s", diff)
	}
	issued(t)
	said := func(want string) func(context.Context) error {
		return func(ctx context.Context) error {
			got, err := findings(ctx)
			if err == nil && !strings.Contains(got, want) || err == nil && want == "" && got != "" {
				err = errors.New(got)
			}
			return err
		}
	}
	env.Eventually(t, "doctor to find nothing wrong", said(""))

	refusedBesideTheWebhooksOwn(t)
	broken := &cmapi.Certificate{}
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: shipper.SystemNamespace, Name: certs.CertificateName}, broken); err != nil {
		t.Fatal(err)
	}
	was := broken.DeepCopy()
	broken.Spec.IssuerRef.Name = "missing"
	if err := admin.Patch(t.Context(), broken, client.MergeFrom(was)); err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, "doctor to explain the Certificate", said(fmt.Sprintf(
		"the Certificate %s/%s of cert-manager: it is not ready (IncorrectIssuer): ", shipper.SystemNamespace, certs.CertificateName)))
	want = []string{
		"Creating the Certificate shipper-webhook of cert-manager... already exists. Updating... done",
		"Creating the Issuer shipper-self-signed of cert-manager... already exists. Skipping",
		"Creating the Certificate shipper-webhook-ca of cert-manager... already exists. Skipping",
		"Creating the Issuer shipper-webhook-ca of cert-manager... already exists. Skipping",
		"Waiting for cert-manager to issue the certificate... done",
	}
	if diff := cmp.Diff(want, setUpBy(t, certs.CertManager)); diff != "" {
		t.Errorf("again (-want +got):\n%s", diff)
	}
}

// refusedBesideTheWebhooksOwn has the Deployment make its own certificates for a moment. No Pod of it runs here.
func refusedBesideTheWebhooksOwn(t *testing.T) {
	t.Helper()
	d := &appsv1.Deployment{}
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: shipper.SystemNamespace, Name: health.DeploymentName}, d); err != nil {
		t.Fatal(err)
	}
	args := d.Spec.Template.Spec.Containers[0].Args
	set := func(args []string) {
		t.Helper()
		before := d.DeepCopy()
		d.Spec.Template.Spec.Containers[0].Args = args
		if err := admin.Patch(t.Context(), d, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	set(slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return strings.HasPrefix(arg, "--certs=") }))
	const want = "First roll the Deployment out with --certs=cert-manager"
	if err := setup(t, certs.CertManager, io.Discard).Setup(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("beside a webhook that makes its own certificates: %v, want %s", err, want)
	}
	set(args)
}

// explainedWithoutCertManager starts a webhook while cert-manager does not run.
func explainedWithoutCertManager(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	r := replicas[0]
	go func() { ended <- r.StartWebhook(ctx) }()
	env.Eventually(t, "the webhook to explain what it waits for", func(context.Context) error {
		const want = "Certificate shipper-system/shipper-webhook of cert-manager: cert-manager has not looked at it: check that cert-manager runs"
		log, err := os.ReadFile(filepath.Join(folders[0], "shipper-webhook.log"))
		if err == nil && !strings.Contains(string(log), want) {
			err = errors.New(string(log))
		}
		return err
	})
	cancel()
	if err := <-ended; err == nil {
		t.Error("the webhook was ready without a certificate")
	}
	if err := r.Webhook.Stop(); err != nil {
		t.Error(err)
	}
}
