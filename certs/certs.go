// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Mode says who makes certificates.
type Mode string

// The modes.
const (
	// Self makes and renews certificates in this process.
	Self Mode = "self"
	// CertManager leaves them to cert-manager.
	CertManager Mode = "cert-manager"
	// Files reads them from a folder.
	Files Mode = "files"
)

// Options say where certificates are and for whom.
type Options struct {
	Mode Mode
	// Secret holds the certificate, in all modes but Files.
	Secret types.NamespacedName
	// Dir holds tls.crt and tls.key, in mode Files.
	Dir string
	// DNSNames are the names the certificate is for, in mode Self. The first is the Service's.
	DNSNames []string
	// Configurations is the name of the two webhook configurations that get the CA, in mode Self.
	Configurations string
	// Scratch is a folder that can be written to, in mode Self.
	Scratch string
	// Registry takes the metric of when the certificate ends.
	Registry prometheus.Registerer
}

// Source has a certificate to serve with.
type Source interface {
	// GetCertificate is for tls.Config.
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Ready is nil once there is a certificate that the API server trusts. It is a health check.
	Ready(*http.Request) error
}

// keys of the Secret and names of the files.
const (
	certKey = corev1.TLSCertKey
	keyKey  = corev1.TLSPrivateKeyKey
)

// CacheOptions keep the manager's cache from reading any Secret but that of the certificate.
func CacheOptions(o Options) cache.ByObject {
	return cache.ByObject{Namespaces: map[string]cache.Config{
		o.Secret.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", o.Secret.Name)},
	}}
}

// Setup adds to mgr what keeps the certificate fresh. mgr's cache must have CacheOptions for Secrets.
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

// register publishes when the certificate that current returns ends; 0 while there is none.
func register(registry prometheus.Registerer, current func() *tls.Certificate) error {
	gauge := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shipper_webhook_certificate_end_timestamp_seconds",
		Help: "When the certificate that is served ends, in seconds since 1970; 0 while there is none.",
	}, func() float64 {
		if c := current(); c != nil && c.Leaf != nil {
			return float64(c.Leaf.NotAfter.UnixNano()) / float64(time.Second)
		}
		return 0
	})
	if err := registry.Register(gauge); err != nil {
		return fmt.Errorf("registering certificate metric: %w", err)
	}
	return nil
}
