// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

var errNoCertificate = errors.New("there is no certificate to serve with yet")

// secret serves the last certificate read from a Secret.
type secret struct {
	current atomic.Pointer[served]
	log     logr.Logger
	// loaded, unless nil, is called after a new certificate is in use.
	loaded func()
	// explain, unless nil, says why there is no certificate; explained is what it said last.
	explain   func(context.Context) string
	explained atomic.Pointer[string]
}

// served is a certificate and the authority beside it in the Secret, nil if there is none.
type served struct {
	pair      tls.Certificate
	authority *x509.Certificate
}

var _ Source = &secret{}

// GetCertificate returns the current certificate.
func (s *secret) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := s.current.Load(); c != nil {
		return &c.pair, nil
	}
	return nil, errNoCertificate
}

// Ready is nil once there is a certificate, and an error that says why if cert-manager has not issued one. That is logged, too, when it
// changes: the answer to a probe withholds it.
func (s *secret) Ready(r *http.Request) error {
	if s.current.Load() != nil {
		return nil
	}
	if s.explain == nil {
		return errNoCertificate
	}
	why := s.explain(r.Context())
	if why == "" {
		return errNoCertificate
	}
	if last := s.explained.Swap(&why); last == nil || *last != why {
		s.log.Info("There is no certificate to serve with yet", "reason", why)
	}
	return fmt.Errorf("%w: %s", errNoCertificate, why)
}

func setupSecret(ctx context.Context, mgr manager.Manager, o Options) (Source, error) {
	of := &issuance{api: mgr.GetAPIReader(), namespace: o.Secret.Namespace, clock: o.Clock}
	s := &secret{log: mgr.GetLogger().WithName("certs"), explain: of.explain}
	return s, s.watch(ctx, mgr, o)
}

// watch uses every new certificate in the Secret.
func (s *secret) watch(ctx context.Context, mgr manager.Manager, o Options) error {
	informer, err := mgr.GetCache().GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching secret %s: %w", o.Secret, err)
	}
	take := func(o any) {
		if found, ok := o.(*corev1.Secret); ok {
			s.take(found)
		}
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    take,
		UpdateFunc: func(_, now any) { take(now) },
	}); err != nil {
		return fmt.Errorf("watching secret %s: %w", o.Secret, err)
	}
	return register(o.Registry, s.ends)
}

// ends are the certificates whose end is published.
func (s *secret) ends() (leaf, authority *x509.Certificate) {
	if c := s.current.Load(); c != nil {
		return c.pair.Leaf, c.authority
	}
	return nil, nil
}

// take serves with found's certificate from now on. If that is missing or broken, it keeps the current one: a certificate that
// is still valid is better than none.
func (s *secret) take(found *corev1.Secret) {
	certPEM, keyPEM := found.Data[certKey], found.Data[keyKey]
	if len(certPEM) == 0 || len(keyPEM) == 0 {
		return
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		s.log.Error(err, "The secret holds no usable certificate; the one before is served", "secret", klog.KObj(found))
		return
	}
	now := &served{pair: pair}
	if authorities := certificates(found.Data[caKey]); len(authorities) > 0 {
		now.authority = authorities[0]
	}
	before := s.current.Swap(now)
	if before != nil && before.pair.Leaf.Equal(pair.Leaf) {
		return // another part of the Secret has changed
	}
	s.log.Info("Serving with a new certificate", "secret", klog.KObj(found),
		"until", pair.Leaf.NotAfter, "names", pair.Leaf.DNSNames)
	if s.loaded != nil {
		s.loaded()
	}
}
