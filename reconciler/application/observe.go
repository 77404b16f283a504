// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/release/blocks"
	"shipper.dev/shipper/reconciler/release/history"
)

// scope is everything read in one pass.
type scope struct {
	// app is never nil and not being deleted.
	app *shipper.Application
	// history has the Releases and their targets.
	history history.History
	// blocks bear on the Application's namespace.
	blocks []*shipper.RolloutBlock
	// clusters are all there are; nil while no block asks.
	clusters []shipper.Cluster
}

// view is how the blocks are seen at a time.
func (s *scope) view(now metav1.Time) blocks.View {
	return blocks.View{
		App: s.app, Releases: s.history.Releases(), Bearing: s.blocks, Clusters: s.clusters, Now: now.Time,
	}
}

// observe reads from the cache. The scope is nil when there is nothing to do, because the Application is gone or going.
func (r *Reconciler) observe(ctx context.Context, req ctrl.Request) (*scope, error) {
	app := &shipper.Application{}
	if err := r.client.Get(ctx, req.NamespacedName, app); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return r.read(ctx, app, r.histories.Cached)
}

// observeLive makes sure that what is decided is decided by no old news, with one request a minute where nothing has changed. The
// template is a wish, which may be seen a moment later: it is written back only as it was read. Blocks, and the
// clusters that some of them name, are as the cache has them: whatever is made, moved or deleted is judged by the gate, which refuses
// it under one that is not known here yet.
func (r *Reconciler) observeLive(ctx context.Context, req ctrl.Request, now metav1.Time) (*scope, error) {
	app, err := r.histories.Application(ctx, req.NamespacedName, r.known)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return r.read(ctx, app, func(ctx context.Context, app *shipper.Application) (history.History, error) {
		return r.histories.Confirmed(ctx, app, r.known, now.Time)
	})
}

func (r *Reconciler) read(
	ctx context.Context, app *shipper.Application,
	histories func(context.Context, *shipper.Application) (history.History, error),
) (*scope, error) {
	if !app.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	s := &scope{app: app}
	var err error
	if s.history, err = histories(ctx, s.app); err != nil {
		return nil, err
	}
	if s.blocks, err = blocks.Bearing(ctx, r.client, s.app.Namespace, r.global); err != nil {
		return nil, err
	}
	if blocks.NameClusters(s.blocks) {
		var clusters shipper.ClusterList
		if err := r.client.List(ctx, &clusters); err != nil {
			return nil, fmt.Errorf("listing clusters: %w", err)
		}
		s.clusters = clusters.Items
	}
	return s, nil
}
