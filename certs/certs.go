// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Mode is where certificates come from.
type Mode string

// The modes.
const (
	// Self creates and renews certificates in this process.
	Self Mode = "self"
	// CertManager leaves that to cert-manager.
	CertManager Mode = "cert-manager"
	// Files reads them from a folder.
	Files Mode = "files"
)

// Options configure the certificates.
type Options struct {
	Mode Mode
	// Secret holds the certificate, in all modes but Files.
	Secret types.NamespacedName
	// Dir holds tls.crt and tls.key, in mode Files.
	Dir string
	// DNSNames are the names, and IP addresses, of the certificate, in mode Self. The first is the Service's.
	DNSNames []string
	// Lifetimes are those of the created certificates, in mode Self.
	Lifetimes Lifetimes
	// Configurations is the name of the two webhook configurations that get the CA, in mode Self.
	Configurations string
	// Registry registers the metric of when certificates end.
	Registry prometheus.Registerer
	// Clock is used to decide when to renew, in mode Self, and whether a renewal is overdue, in mode CertManager.
	Clock clock.PassiveClock
}

// Source provides the certificate to serve with.
type Source interface {
	// GetCertificate is for tls.Config.
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Ready is nil once there is a certificate that the API server trusts. It is a health check.
	Ready(*http.Request) error
}

// CacheOptions limit the manager's cache to the Secret of the certificate and to Shipper's webhook configurations.
func CacheOptions(o Options) map[client.Object]cache.ByObject {
	named := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	return map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Namespaces: map[string]cache.Config{
			o.Secret.Namespace: {FieldSelector: named(o.Secret.Name)},
		}},
		&admissionv1.ValidatingWebhookConfiguration{}: {Field: named(o.Configurations)},
		&admissionv1.MutatingWebhookConfiguration{}:   {Field: named(o.Configurations)},
	}
}

// AddToScheme adds the kinds that this package reads and writes.
func AddToScheme(s *runtime.Scheme) error {
	if err := errors.Join(corev1.AddToScheme(s), admissionv1.AddToScheme(s), certmanagerv1.AddToScheme(s)); err != nil {
		return fmt.Errorf("building scheme: %w", err)
	}
	return nil
}

// Setup adds to mgr the controllers that keep the certificate valid. mgr must have a cache with CacheOptions and a scheme with
// AddToScheme.
func Setup(ctx context.Context, mgr manager.Manager, o Options) (Source, error) {
	switch o.Mode {
	case Self:
		return setupSelf(ctx, mgr, o)
	case CertManager:
		return setupSecret(ctx, mgr, o)
	case Files:
		return setupFiles(mgr, o)
	}
	return nil, fmt.Errorf("mode of certificates %q: use %s, %s or %s", o.Mode, Self, CertManager, Files)
}
