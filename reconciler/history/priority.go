// SPDX-License-Identifier: Apache-2.0

package history

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
	"shipper.dev/shipper/reconciler/queue"
)

// Priorities decides the priority of Applications from the cache.
type Priorities struct {
	// ctx lives as long as the process: queues ask without one.
	ctx       context.Context
	cache     client.Reader
	histories *Reader
	informers []cache.Informer
}

// NewPriorities reads Applications and Releases from a cache. ctx is needed for the time of the call only.
func NewPriorities(ctx context.Context, c cache.Cache, histories *Reader) (*Priorities, error) {
	out := &Priorities{ctx: context.WithoutCancel(ctx), cache: c, histories: histories}
	for _, kind := range []client.Object{&shipper.Application{}, &shipper.Release{}} {
		informer, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("setting up queues: watching %T: %w", kind, err)
		}
		out.informers = append(out.informers, informer)
	}
	return out, nil
}

// Of returns the priority of an Application: Urgent while it is aborted or goes back, Low at rest or while that is not known. It does not
// wait for the cache.
func (p *Priorities) Of(key types.NamespacedName) queue.Priority {
	if slices.ContainsFunc(p.informers, func(i cache.Informer) bool { return !i.HasSynced() }) {
		return queue.Low
	}
	var app shipper.Application
	shared := &client.GetOptions{UnsafeDisableDeepCopy: ptr.To(true)}
	if err := p.cache.Get(p.ctx, key, &app, shared); apierrors.IsNotFound(err) {
		return queue.Normal // its objects are being removed
	} else if err != nil {
		return queue.Low
	}
	rels, err := p.histories.Releases(p.ctx, key)
	switch {
	case err != nil || strategy.Rests(&app, rels):
		return queue.Low
	case strategy.Retreats(&app, rels):
		return queue.Urgent
	}
	return queue.Normal
}

// OfApplication is Of for requests that name Applications.
func (p *Priorities) OfApplication(r reconcile.Request) queue.Priority {
	return p.Of(r.NamespacedName)
}

// OfRelease is Of for requests that name Releases or their targets.
func (p *Priorities) OfRelease(r reconcile.Request) queue.Priority {
	return p.Of(types.NamespacedName{Namespace: r.Namespace, Name: stamp.ApplicationName(r.Name)})
}
