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
		return nil, client.IgnoreNotFound(err)
	}
	if !app.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	h, err := r.histories.Cached(ctx, app)
	if err != nil || stamp.Restoring(app, h.Newest()) {
		return nil, err
	}
	return r.surround(ctx, r.client, &scope{app: app, history: h})
}

// observeLive reads again what cached was read of, from the API server.
func (r *Reconciler) observeLive(ctx context.Context, cached *scope) (*scope, error) {
	app := &shipper.Application{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(cached.app), app); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !app.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	h, err := r.histories.Live(ctx, app)
	if err != nil || stamp.Restoring(app, h.Newest()) {
		return nil, err
	}
	return r.surround(ctx, r.live, &scope{app: app, history: h})
}

// surround reads what is around the Releases.
func (r *Reconciler) surround(ctx context.Context, from client.Reader, s *scope) (*scope, error) {
	var err error
	if s.blocks, err = blocks.Bearing(ctx, from, s.app.Namespace, r.global); err != nil {
		return nil, err
	}
	newest := s.history.Newest()
	if blocks.NameClusters(s.blocks) || (newest != nil && len(strategy.Clusters(newest)) == 0) {
		var clusters shipper.ClusterList
		if err := from.List(ctx, &clusters); err != nil {
			return nil, fmt.Errorf("listing clusters: %w", err)
		}
		s.clusters = clusters.Items
	}
	return s, nil
}
