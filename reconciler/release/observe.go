// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
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
	// clusters are all there are; nil while nobody needs to know.
	clusters []shipper.Cluster
}

// view is how the blocks are seen at a time.
func (s *scope) view(now metav1.Time) blocks.View {
	return blocks.View{
		App: s.app, Releases: s.history.Releases(), Bearing: s.blocks, Clusters: s.clusters, Now: now.Time,
	}
}

// observe reads from the cache. The scope is nil when there is nothing to do: an Application that is gone or going
// takes its Releases with it, and what runs is left as it is until then; one that is being restored says itself what it
// waits for.
func (r *Reconciler) observe(ctx context.Context, req ctrl.Request) (*scope, error) {
	app := &shipper.Application{}
	if err := r.client.Get(ctx, req.NamespacedName, app); err != nil {
		r.writes.Forget(req.NamespacedName)
		return nil, client.IgnoreNotFound(err)
	}
	if !app.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	h, err := r.histories.Cached(ctx, app)
	if err != nil || stamp.Restoring(app, h.Newest()) {
		return nil, err
	}
	s := &scope{app: app, history: h}
	if s.blocks, err = blocks.Bearing(ctx, r.client, app.Namespace, r.global); err != nil {
		return nil, err
	}
	return s, r.seeClusters(ctx, s)
}

// observeLive makes sure that what cached was read of is no old news, with one request a minute where nothing has changed: it is done
// before every write. Blocks are as the cache has them: each write of a target is judged by the gate, which refuses it under one
// that is not known here yet. So are clusters: to be chosen from those of a moment ago is to be chosen a moment earlier.
func (r *Reconciler) observeLive(ctx context.Context, cached *scope, now metav1.Time) (*scope, error) {
	app, err := r.histories.Application(ctx, client.ObjectKeyFromObject(cached.app), r.writes)
	// Another of its name has Releases of its own, and an event of its own.
	if err != nil || app.UID != cached.app.UID || !app.DeletionTimestamp.IsZero() {
		return nil, client.IgnoreNotFound(err)
	}
	s := &scope{app: app}
	// After the Application: what it says of its Releases was written after these.
	if s.history, err = r.histories.Verified(ctx, app, r.writes, now.Time); err != nil || stamp.Restoring(app, s.history.Newest()) {
		return nil, err
	}
	if s.blocks, err = blocks.Bearing(ctx, r.client, app.Namespace, r.global); err != nil {
		return nil, err
	}
	return s, r.seeClusters(ctx, s)
}

// seeClusters reads the clusters, where somebody needs to know them.
func (r *Reconciler) seeClusters(ctx context.Context, s *scope) error {
	newest := s.history.Newest()
	if !blocks.NameClusters(s.blocks) && (newest == nil || len(strategy.Clusters(newest)) > 0) {
		return nil
	}
	var clusters shipper.ClusterList
	if err := r.client.List(ctx, &clusters); err != nil {
		return fmt.Errorf("listing clusters: %w", err)
	}
	s.clusters = clusters.Items
	return nil
}
