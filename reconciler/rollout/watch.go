// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"shipper.dev/shipper/apis/rules/placement"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/predicates"
	"shipper.dev/shipper/reconciler/retry"
)

const (
	// name of the reconciler, in logs, metrics and indexes.
	name = "rollout"
	// unplaced is the index of Releases that may get clusters: they have none, or their placement may add some. Its keys are yes, for all of
	// them, and byProperties, for those whose placement names labels or properties.
	unplaced = name + ".unplaced"
	// onCluster is the index of Releases by the clusters that they have.
	onCluster = name + ".onCluster"
	// undecided is the index of Releases whose checks are undecided, or cannot begin.
	undecided = name + ".undecided"
	yes       = "yes"
	// byProperties is a key of unplaced.
	byProperties = "byProperties"
	// defaultWorkers is how many Applications are worked on at the same time.
	defaultWorkers = 4
)

// SetupWithManager makes the reconciler run with mgr. ctx is needed for the time of the call only.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.UnhealthyAfter == 0 {
		o.UnhealthyAfter = placement.DefaultUnhealthyAfter
	}
	for index, keys := range map[string]client.IndexerFunc{unplaced: isUnplaced, onCluster: clustersOf, undecided: isUndecided} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, &shipper.Release{}, index, keys); err != nil {
			return fmt.Errorf("indexing releases by %s: %w", index, err)
		}
	}
	if (o.Content == nil) != (o.Snapshots == nil) {
		return errors.New("setting up rollout: content and snapshots go together")
	}
	r := &Reconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), histories: o.Histories, charts: o.Charts,
		content: o.Content, snapshots: o.Snapshots,
		global: o.GlobalBlocksNamespace, sharedChecks: o.SharedChecksNamespace, clock: o.Clock, unhealthyAfter: o.UnhealthyAfter,
		recorder: mgr.GetEventRecorder(fleet.UserAgent),
		retrier:  retry.NewRetrier(retry.Limiter[ctrl.Request]()), releases: report.NewThrottle(),
		metrics: newMetrics(ctx, mgr.GetCache(), o.Clock), since: sync.OnceValue(o.Clock.Now),
	}
	if o.Registry != nil {
		if err := o.Registry.Register(r.metrics); err != nil {
			return fmt.Errorf("registering metrics of rollouts: %w", err)
		}
	}
	build := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&shipper.Application{}, predicates.SpecOrMetaChanged()).
		Watches(&shipper.Release{}, predicates.EnqueueForApplication()).
		Watches(&shipper.InstallationTarget{}, predicates.EnqueueForApplication()).
		Watches(&shipper.CapacityTarget{}, predicates.EnqueueForApplication()).
		Watches(&shipper.TrafficTarget{}, predicates.EnqueueForApplication()).
		Watches(&shipper.Approval{}, predicates.EnqueueForApplication()).
		Watches(&shipper.CheckTarget{}, predicates.EnqueueForApplication()).
		Watches(&shipper.Check{}, handler.EnqueueRequestsFromMapFunc(r.withoutCheck), predicates.SpecOrMetaChanged()).
		Watches(&shipper.RolloutBlock{}, predicates.EnqueueForBlock(r.client, r.global), predicates.BlockActiveChanged()).
		Watches(&shipper.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.concernedBy(yes)), predicates.ClusterFactsChanged()).
		Watches(&shipper.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.concernedBy(byProperties)), predicates.ClusterPropertiesChanged()).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers, RateLimiter: retry.Limiter[ctrl.Request](), NewQueue: o.Queue})
	if o.Content != nil {
		build = r.watchContent(build)
	}
	if err := build.Complete(r); err != nil {
		return fmt.Errorf("setting up rollout: %w", err)
	}
	return nil
}

// withoutCheck makes a request for each Application whose newest Release cannot begin its checks: this Check may be the one that it needs.
func (r *Reconciler) withoutCheck(ctx context.Context, _ client.Object) []reconcile.Request {
	var rels shipper.ReleaseList
	if err := r.client.List(ctx, &rels, client.MatchingFields{undecided: yes}); err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the releases that wait for Checks")
	}
	return requests(ctx, rels)
}

func isUndecided(o client.Object) []string {
	if rel, ok := o.(*shipper.Release); ok {
		c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseAdvancing)
		if c != nil && c.Reason == shipper.AdvancingCheckUndecided {
			return []string{yes}
		}
	}
	return nil
}

// concernedBy makes a request for each Application with a Release that this cluster may be added to, as far as its key in unplaced says,
// or with clusters that leave: this one, or others that this one may replace.
func (r *Reconciler) concernedBy(key string) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		logger := log.FromContext(ctx).WithValues("cluster", o.GetName())
		var clusters shipper.ClusterList
		if err := r.client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
			logger.Error(err, "Cannot find the clusters that leave")
		}
		fields, gone := []client.MatchingFields{{unplaced: key}}, true
		for i := range clusters.Items {
			c := &clusters.Items[i]
			if gone = gone && c.Name != o.GetName(); !c.DeletionTimestamp.IsZero() {
				fields = append(fields, client.MatchingFields{onCluster: c.Name})
			}
		}
		if gone {
			fields = append(fields, client.MatchingFields{onCluster: o.GetName()})
		}
		var out []reconcile.Request
		for _, by := range fields {
			var rels shipper.ReleaseList
			if err := r.client.List(ctx, &rels, by, client.UnsafeDisableDeepCopy); err != nil {
				logger.Error(err, "Cannot find the releases that a cluster concerns")
			}
			out = append(out, requests(ctx, rels)...)
		}
		return out
	}
}

// requests are those of the Applications of Releases.
func requests(ctx context.Context, rels shipper.ReleaseList) []reconcile.Request {
	var out []reconcile.Request
	for i := range rels.Items {
		out = append(out, predicates.Requests(ctx, &rels.Items[i])...)
	}
	return out
}

func isUnplaced(o client.Object) []string {
	rel, ok := o.(*shipper.Release)
	switch {
	case !ok || len(stamp.Clusters(rel)) > 0 && !searching(rel) && len(outsideWaves(rel)) == 0:
		return nil
	case len(outsideWaves(rel)) > 0, placement.NamesProperties(rel.Spec.Environment.ClusterRequirements.Placement):
		return []string{yes, byProperties}
	}
	return []string{yes}
}

func clustersOf(o client.Object) []string {
	rel, ok := o.(*shipper.Release)
	if !ok {
		return nil
	}
	return stamp.Clusters(rel)
}
