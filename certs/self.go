// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// The back-off after a failed write, at first and at most: short, so that it does not delay a recovery.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// self serves the certificate that a rotation writes into the Secret.
type self struct {
	*secret
	rotation *rotation
}

// Ready is nil once there is a certificate that the webhook configurations trust.
func (s *self) Ready(r *http.Request) error {
	if err := s.secret.Ready(r); err != nil {
		return err
	}
	return s.rotation.check()
}

func setupSelf(ctx context.Context, mgr manager.Manager, o Options) (Source, error) {
	if len(o.DNSNames) == 0 {
		return nil, errors.New("no DNS name to make a certificate for")
	}
	if err := o.Lifetimes.Validate(); err != nil {
		return nil, err
	}
	served := make(chan event.GenericEvent, 1)
	served <- event.GenericEvent{Object: &corev1.Secret{}} // the first pass, even without an object
	s := &self{secret: &secret{log: mgr.GetLogger().WithName("certs"), loaded: func() {
		select {
		case served <- event.GenericEvent{Object: &corev1.Secret{}}:
		default: // a pass is queued already
		}
	}}}
	s.rotation = &rotation{
		policy: policy{Lifetimes: o.Lifetimes.orDefaults(), names: o.DNSNames},
		secret: o.Secret, name: o.Configurations,
		cached: mgr.GetClient(), api: mgr.GetAPIReader(), writer: mgr.GetClient(),
		clock: o.Clock, log: s.log,
		serving: s.leaf,
	}
	if err := s.watch(ctx, mgr, o); err != nil {
		return nil, err
	}
	return s, s.rotation.watch(mgr, served)
}

// leaf is the serving certificate, nil for none.
func (s *secret) leaf() *x509.Certificate {
	if c := s.current.Load(); c != nil {
		return c.pair.Leaf
	}
	return nil
}

// watch runs a pass when the Secret, a webhook configuration or the serving certificate changes.
func (r *rotation) watch(mgr manager.Manager, served <-chan event.GenericEvent) error {
	c, err := controller.New("certificates", mgr, controller.Options{
		Reconciler: r, NeedLeaderElection: ptr.To(false), // every replica does; see rotation
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	})
	if err != nil {
		return fmt.Errorf("making the controller of certificates: %w", err)
	}
	one := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: r.secret}}
	})
	for _, o := range []client.Object{
		&corev1.Secret{}, &admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfiguration{},
	} {
		if err := c.Watch(source.Kind(mgr.GetCache(), o, one)); err != nil {
			return fmt.Errorf("watching for the rotation of certificates: %w", err)
		}
	}
	if err := c.Watch(source.Channel(served, one)); err != nil {
		return fmt.Errorf("watching for the rotation of certificates: %w", err)
	}
	return nil
}
