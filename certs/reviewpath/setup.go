// SPDX-License-Identifier: Apache-2.0

package reviewpath

import (
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Options configure the path.
type Options struct {
	// Secret is that of the certificate.
	Secret types.NamespacedName
	// Configurations is the name of the two webhook configurations.
	Configurations string
	// Lifetime is the age at which a token is replaced, an hour at least.
	Lifetime time.Duration
	Clock    clock.Clock
}

// Setup adds to mgr the controller that keeps the path. mgr must have the cache and the scheme that package certs describes.
func Setup(ctx context.Context, mgr manager.Manager, o Options) (*Path, error) {
	p := &Path{
		ctx: ctx, secret: o.Secret, name: o.Configurations, lifetime: max(o.Lifetime, time.Hour),
		cached: mgr.GetClient(), api: mgr.GetAPIReader(), writer: mgr.GetClient(),
		clock: o.Clock, log: mgr.GetLogger().WithName("reviewpath"),
	}
	c, err := controller.New("reviewpath", mgr, controller.Options{
		Reconciler: p, NeedLeaderElection: ptr.To(false), // every replica answers
	})
	if err != nil {
		return nil, fmt.Errorf("making the controller of the path of reviews: %w", err)
	}
	one := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: o.Secret}}
	})
	first := make(chan event.GenericEvent, 1)
	first <- event.GenericEvent{Object: &corev1.Secret{}} // the first pass, even without an object
	sources := []source.Source{source.Channel(first, one)}
	for _, o := range []client.Object{
		&corev1.Secret{}, &admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfiguration{},
	} {
		sources = append(sources, source.Kind(mgr.GetCache(), o, one))
	}
	for _, s := range sources {
		if err := c.Watch(s); err != nil {
			return nil, fmt.Errorf("watching for the path of reviews: %w", err)
		}
	}
	return p, nil
}
