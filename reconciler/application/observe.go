// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// observe reads from the cache. The scope is nil when the Application is gone or going: what that leaves to do is done.
func (r *Reconciler) observe(ctx context.Context, req ctrl.Request, now metav1.Time) (*scope, error) {
	app := &shipper.Application{}
	err := r.client.Get(ctx, req.NamespacedName, app)
	switch {
	case apierrors.IsNotFound(err):
		return nil, r.endOrphans(ctx, req.NamespacedName, now)
	case err != nil:
		return nil, err
	case !app.DeletionTimestamp.IsZero():
		return nil, r.end(ctx, app.DeepCopy(), now)
	}
	return r.read(ctx, app, r.histories.Cached)
}

// observeLive makes sure that what is decided is decided by no old news, with one request a minute where nothing has changed. The
// template is a wish, which may be seen a moment later: it is written back only as it was read. Blocks, and the
// clusters that some of them name, are as the cache has them: whatever is made, moved or deleted is judged by the gate, which refuses
// it under one that is not known here yet.
func (r *Reconciler) observeLive(ctx context.Context, req ctrl.Request, now metav1.Time) (*scope, error) {
	app, err := r.histories.Application(ctx, req.NamespacedName, r.writes)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return r.read(ctx, app, func(ctx context.Context, app *shipper.Application) (history.History, error) {
		return r.histories.Verified(ctx, app, r.writes, now.Time)
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
	return s, r.seeClusters(ctx, s)
}

// seeClusters reads the clusters, where a block names some.
func (r *Reconciler) seeClusters(ctx context.Context, s *scope) error {
	if !blocks.NameClusters(s.blocks) {
		return nil
	}
	var clusters shipper.ClusterList
	if err := r.client.List(ctx, &clusters); err != nil {
		return fmt.Errorf("listing clusters: %w", err)
	}
	s.clusters = clusters.Items
	return nil
}
