// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/rollout/history"
)

// Applications decides the priority of Applications from the cache.
type Applications struct {
	// ctx lives as long as the process: queues ask without one.
	ctx       context.Context
	cache     client.Reader
	histories *history.Reader
	informers []cache.Informer
}

// NewApplications reads Applications and Releases from a cache. ctx is needed for the time of the call only.
func NewApplications(ctx context.Context, c cache.Cache, histories *history.Reader) (*Applications, error) {
	out := &Applications{ctx: context.WithoutCancel(ctx), cache: c, histories: histories}
	for _, kind := range []client.Object{&shipper.Application{}, &shipper.Release{}} {
		informer, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("setting up queues: watching %T: %w", kind, err)
		}
		out.informers = append(out.informers, informer)
	}
	return out, nil
}

// Priority of an Application: Urgent while it is aborted or goes back, Low at rest or while that is not known. It does not wait for
// the cache.
func (a *Applications) Priority(key types.NamespacedName) Priority {
	if slices.ContainsFunc(a.informers, func(i cache.Informer) bool { return !i.HasSynced() }) {
		return Low
	}
	var app shipper.Application
	shared := &client.GetOptions{UnsafeDisableDeepCopy: ptr.To(true)}
	if err := a.cache.Get(a.ctx, key, &app, shared); apierrors.IsNotFound(err) {
		return Normal // its objects are being removed
	} else if err != nil {
		return Low
	}
	rels, err := a.histories.Releases(a.ctx, key)
	switch {
	case err != nil || strategy.Rests(&app, rels):
		return Low
	case strategy.Retreats(&app, rels):
		return Urgent
	}
	return Normal
}

// OfApplication is Priority for requests that name Applications.
func (a *Applications) OfApplication(r reconcile.Request) Priority {
	return a.Priority(r.NamespacedName)
}

// OfRelease is Priority for requests that name Releases or their targets.
func (a *Applications) OfRelease(r reconcile.Request) Priority {
	return a.Priority(types.NamespacedName{Namespace: r.Namespace, Name: stamp.ApplicationName(r.Name)})
}
