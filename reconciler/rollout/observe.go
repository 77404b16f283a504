// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/history"
	"shipper.dev/shipper/reconciler/rollout/blocks"
)

// cacheTimeout bounds how long a worker waits for the cache to show what a pass has written.
const cacheTimeout = 5 * time.Second

// scope is everything that one pass has read.
type scope struct {
	// app is never nil, not being deleted, and the pass's own.
	app *shipper.Application
	// history has the Releases and their targets. They are the cache's own: own copies one before it is changed.
	history history.History
	// blocks bear on the Application's namespace.
	blocks []*shipper.RolloutBlock
	// content is that of resources.
	content content
	// approvals bear on the newest Release; none where its step asks for none.
	approvals []shipper.Approval
	// checks are those of the newest Release.
	checks checksScope
	// clusters are all there are, and the cache's own; nil if neither a block nor placement needs them.
	clusters []shipper.Cluster
	// unhealthyAfter is how long a cluster may be not ready and still be picked.
	unhealthyAfter time.Duration
	// since is when this process began to observe Applications.
	since time.Time
	// taken is what the template takes from a Strategy; nil if it takes none, or if that is not known.
	taken *shipper.RolloutStrategy
}

// view is how the blocks are seen at a time.
func (s *scope) view(now metav1.Time) blocks.View {
	return blocks.View{
		App: s.placing(), Releases: s.history.Releases(), Bearing: s.blocks, Clusters: s.clusters, Now: now.Time,
		UnhealthyAfter: s.unhealthyAfter,
	}
}

// own replaces the i-th live Release by a copy, which may be changed.
func (s *scope) own(i int) *shipper.Release {
	rel := s.history.Live[i].Release.DeepCopy()
	s.history.Live[i].Release = rel
	return rel
}

// observe reads from the cache. The scope is nil if the Application is gone or being deleted: then observe does what is left to do.
func (r *pass) observe(ctx context.Context, req ctrl.Request) (*scope, error) {
	app := &shipper.Application{}
	err := r.client.Get(ctx, req.NamespacedName, app)
	switch {
	case apierrors.IsNotFound(err):
		r.confirmed.Delete(req.NamespacedName)
		r.forgetContent(ctx, req.NamespacedName)
		r.finished.Delete(req.NamespacedName)
		return nil, r.finishOrphans(ctx, req.NamespacedName)
	case err != nil:
		return nil, err
	case !app.DeletionTimestamp.IsZero():
		r.forgetContent(ctx, req.NamespacedName)
		return nil, r.finish(ctx, app)
	}
	s := &scope{app: app, since: r.since(), unhealthyAfter: r.unhealthyAfter}
	if s.history, err = r.histories.Cached(ctx, s.app); err != nil {
		return nil, err
	}
	r.observeContent(ctx, s)
	if err = r.observeStrategy(ctx, s); err != nil {
		return nil, err
	}
	if s.blocks, err = blocks.Bearing(ctx, r.client, s.app.Namespace, r.global); err != nil {
		return nil, err
	}
	if s.approvals, err = r.observeApprovals(ctx, s); err != nil {
		return nil, err
	}
	if s.checks, err = r.observeChecks(ctx, s); err != nil {
		return nil, err
	}
	return s, r.observeClusters(ctx, s)
}

// observeApprovals reads the Approvals of the newest Release if its strategy asks for some.
func (r *Reconciler) observeApprovals(ctx context.Context, s *scope) ([]shipper.Approval, error) {
	newest := s.history.Newest()
	if newest == nil || !newest.Spec.Environment.Strategy.AsksForApprovals() {
		return nil, nil
	}
	var all shipper.ApprovalList
	err := r.client.List(ctx, &all, client.InNamespace(newest.Namespace), client.MatchingLabels{shipper.ReleaseLabel: newest.Name})
	if err != nil {
		return nil, fmt.Errorf("listing approvals of release %s/%s: %w", newest.Namespace, newest.Name, err)
	}
	return all.Items, nil
}

// observeClusters reads the clusters if a block names some, or which clusters the Releases have may change.
func (r *Reconciler) observeClusters(ctx context.Context, s *scope) error {
	if !blocks.NameClusters(s.blocks) && !undecidedClusters(s.history.Newest()) {
		if leave, err := r.anyLeaves(ctx, s); err != nil || !leave {
			return err
		}
	}
	var clusters shipper.ClusterList
	if err := r.client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing clusters: %w", err)
	}
	s.clusters = append([]shipper.Cluster{}, clusters.Items...)
	return nil
}

// anyLeaves reports whether a cluster leaves a live Release.
func (r *Reconciler) anyLeaves(ctx context.Context, s *scope) (bool, error) {
	known := clustersByName{}
	for _, have := range s.history.Live {
		for _, name := range stamp.Clusters(have.Release) {
			if _, read := known[name]; !read {
				cluster := &shipper.Cluster{}
				switch err := r.client.Get(ctx, client.ObjectKey{Name: name}, cluster, client.UnsafeDisableDeepCopy); {
				case apierrors.IsNotFound(err):
					cluster = nil
				case err != nil:
					return false, fmt.Errorf("reading cluster %s: %w", name, err)
				}
				known[name] = cluster
			}
			if leaves(have.Release, known[name]) {
				return true, nil
			}
		}
	}
	return false, nil
}

// confirm fails with a conflict if the cache lags behind the API server. What this process wrote the cache shows (awaitCache), and
// optimistic locks refuse a write to an object that was changed. That leaves what cannot be undone, which is always confirmed, and the
// first write of a process to an Application: the leader before may have written to its other objects. Blocks are as the cache has
// them: the webhook refuses each write under one that the cache does not show yet.
func (r *pass) confirm(ctx context.Context, s *scope, always bool) error {
	key := client.ObjectKeyFromObject(s.app)
	uid, known := r.confirmed.Load(key)
	first := !known || uid != s.app.UID
	if !first && !always {
		return nil
	}
	current, err := r.histories.Current(ctx, s.app, s.history, first)
	if err != nil {
		return err
	}
	if !current {
		return apierrors.NewConflict(shipper.Resource("applications"), s.app.Name, errors.New("the cache lags behind the API server"))
	}
	r.confirmed.Store(key, s.app.UID)
	return nil
}

// wrote notes that a request to write an object was sent, whatever came of it.
func (r *pass) wrote(o client.Object) {
	var of client.Object
	switch o.(type) {
	case *shipper.Application:
		of = &shipper.Application{}
	case *shipper.Release:
		of = &shipper.Release{}
	case *shipper.InstallationTarget:
		of = &shipper.InstallationTarget{}
	case *shipper.CapacityTarget:
		of = &shipper.CapacityTarget{}
	case *shipper.TrafficTarget:
		of = &shipper.TrafficTarget{}
	case *shipper.CheckTarget:
		of = &shipper.CheckTarget{}
	default:
		return
	}
	of.SetNamespace(o.GetNamespace())
	of.SetName(o.GetName())
	r.written = append(r.written, of)
}

// awaitCache waits until the cache shows what this pass has written: the next pass plans by it. A Get waits for writes to its object.
func (r *pass) awaitCache(ctx context.Context, req ctrl.Request) error {
	if len(r.written) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	for _, o := range r.written {
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(o), o, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
			r.unseen.Store(req.NamespacedName, r.written)
			return fmt.Errorf("waiting for the cache to show %s/%s: %w", o.GetNamespace(), o.GetName(), err)
		}
	}
	r.unseen.Delete(req.NamespacedName)
	return nil
}

// resume waits for what the pass before could not wait for: a watch of the management cluster may be down for long.
func (r *pass) resume(ctx context.Context, req ctrl.Request) error {
	unseen, ok := r.unseen.Load(req.NamespacedName)
	if !ok {
		return nil
	}
	r.written, _ = unseen.([]client.Object)
	err := r.awaitCache(ctx, req)
	r.written = nil
	return err
}
