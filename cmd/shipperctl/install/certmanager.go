// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/certs"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/health"
	"shipper.dev/shipper/manifests"
)

// injectAnnotation has cert-manager's cainjector write the CA of a Certificate into a webhook configuration.
const injectAnnotation = certmanagerv1.WantInjectAnnotation

// ParseCertificates reads the mode of certificates: self or cert-manager; empty means that of the installation.
func ParseCertificates(text string) (certs.Mode, error) {
	switch mode := certs.Mode(text); mode {
	case "", certs.Self, certs.CertManager:
		return mode, nil
	}
	return "", fmt.Errorf("the mode of certificates is %q: use %s or %s", text, certs.Self, certs.CertManager)
}

// certificates makes the Issuers and Certificates of cert-manager, or deletes them where the webhook is to make its own.
func (m *Management) certificates(ctx context.Context) error {
	switch m.Certificates {
	case certs.CertManager:
	case certs.Self:
		return m.withoutCertManager(ctx)
	default:
		return nil
	}
	runs, err := m.runningMode(ctx)
	if err != nil {
		return err
	}
	if runs == certs.Self {
		return errTwoWriters
	}
	objects, err := m.certManagerObjects()
	if err != nil {
		return err
	}
	for _, o := range objects {
		title := fmt.Sprintf("Creating the %s %s of cert-manager", o.GetObjectKind().GroupVersionKind().Kind, o.GetName())
		err := m.Report.Step(title, func() (string, error) {
			return m.applyTyped(ctx, o)
		})
		if err != nil {
			return withoutKinds(err)
		}
	}
	return nil
}

// errTwoWriters keeps cert-manager from a Secret that the webhook writes, too.
var errTwoWriters = errors.New("the webhook of this installation makes its own certificates: " +
	"cert-manager and it would overwrite each other. First roll the Deployment out with --certs=cert-manager " +
	"among the arguments of its container webhook, as in manifests/overlays/cert-manager, and then run this again")

// runningMode is the mode of the installed Deployment; empty if there is none.
func (m *Management) runningMode(ctx context.Context) (certs.Mode, error) {
	d := &appsv1.Deployment{}
	err := m.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: health.DeploymentName}, d)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", explain("reading the Deployment of Shipper", err)
	}
	return health.Mode(d), nil
}

// remindOfMode says with which mode the webhook has to run, unless it does.
func (m *Management) remindOfMode(ctx context.Context) error {
	if m.Certificates == "" {
		return nil
	}
	runs, err := m.runningMode(ctx)
	switch {
	case err != nil:
		return err
	case m.Certificates == certs.CertManager && runs != certs.CertManager:
		m.Report.Printf("The webhook has to run with --certs=%s, as in manifests/overlays/cert-manager", certs.CertManager)
	case m.Certificates == certs.Self && runs == certs.CertManager:
		m.Report.Printf("The webhook still runs with --certs=%s: its certificate is not renewed until it runs without that", certs.CertManager)
	}
	return nil
}

func (m *Management) issued(ctx context.Context) error {
	if m.Certificates != certs.CertManager {
		return nil
	}
	return m.Report.Step("Waiting for cert-manager to issue the certificate", func() (string, error) {
		c, why := &certmanagerv1.Certificate{}, "it is gone"
		key := client.ObjectKey{Namespace: m.Namespace, Name: certs.CertificateName}
		ok, err := cli.Await(ctx, m.Client, key, c, interval, m.Patience, func() bool {
			why = certs.ExplainCertificate(c, m.Clock.Now())
			return why == ""
		})
		if err != nil {
			return "", err
		}
		if !ok {
			return "", cli.WithCode(cli.TimedOut, fmt.Errorf("certificate %s/%s is not ready after %s: %s",
				m.Namespace, certs.CertificateName, m.Patience, why))
		}
		return "done", nil
	})
}

// certManagerObjects are the Issuers and Certificates of the manifests, for this installation.
func (m *Management) certManagerObjects() ([]client.Object, error) {
	objects, err := manifests.Objects(manifests.CertManager)
	if err != nil {
		return nil, err
	}
	var out []client.Object
	for _, o := range objects {
		var typed client.Object
		switch o.GetKind() {
		case certmanagerv1.IssuerKind:
			typed = &certmanagerv1.Issuer{}
		case certmanagerv1.CertificateKind:
			typed = &certmanagerv1.Certificate{}
		default:
			return nil, fmt.Errorf("reading manifests: %s %s is not of cert-manager", o.GetKind(), o.GetName())
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, typed, true); err != nil {
			return nil, fmt.Errorf("reading manifests: %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		typed.SetNamespace(m.Namespace)
		if c, is := typed.(*certmanagerv1.Certificate); is && c.Name == certs.CertificateName {
			m.setDNSNames(c)
		}
		out = append(out, typed)
	}
	return out, nil
}

// setDNSNames gives a Certificate the names by which API servers call this installation's webhook.
func (m *Management) setDNSNames(c *certmanagerv1.Certificate) {
	if m.WebhookURL == nil {
		for i := range c.Spec.DNSNames {
			c.Spec.DNSNames[i] = strings.Replace(c.Spec.DNSNames[i], "."+shipper.SystemNamespace+".", "."+m.Namespace+".", 1)
		}
		return
	}
	host := m.WebhookURL.Hostname()
	if c.Spec.DNSNames = nil; net.ParseIP(host) != nil {
		c.Spec.IPAddresses = []string{host}
	} else {
		c.Spec.DNSNames = []string{host}
	}
}

// applyTyped applies a typed object without its status.
func (m *Management) applyTyped(ctx context.Context, o client.Object) (string, error) {
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return "", fmt.Errorf("encoding %s: %w", o.GetName(), err)
	}
	delete(raw, "status")
	unstructured.RemoveNestedField(raw, "metadata", "creationTimestamp")
	return apply(ctx, m.Client, &unstructured.Unstructured{Object: raw})
}

// withoutCertManager deletes cert-manager's objects of an earlier set-up: they would write the webhook's Secret, too.
func (m *Management) withoutCertManager(ctx context.Context) error {
	objects, err := m.certManagerObjects()
	if err != nil {
		return err
	}
	for _, o := range objects {
		title := fmt.Sprintf("Deleting the %s %s of cert-manager", o.GetObjectKind().GroupVersionKind().Kind, o.GetName())
		err := m.Client.Get(ctx, client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue
		}
		if err == nil {
			err = m.Report.Step(title, func() (string, error) { return "done", remove(ctx, m.Client, o) })
		} else {
			err = explain(title, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func withoutKinds(err error) error {
	if !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		return err
	}
	return fmt.Errorf("%w\n%w", err, errors.New("cert-manager is not installed in this cluster: install it and run this again, or leave out "+
		"--certificates"))
}

// setInjection adds or removes the annotation for cainjector; without a mode it stays.
func (m *Management) setInjection(configuration *unstructured.Unstructured) {
	annotations := configuration.GetAnnotations()
	switch m.Certificates {
	case certs.CertManager:
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[injectAnnotation] = m.Namespace + "/" + certs.CertificateName
	case certs.Self:
		delete(annotations, injectAnnotation)
	}
	configuration.SetAnnotations(annotations)
}
