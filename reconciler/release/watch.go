// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/release/history"
	"shipper.dev/shipper/reconciler/release/outcome"
)

const (
	// name of the reconciler, in logs, metrics and indexes.
	name = "release"
	// unscheduled is the index of Releases that have no clusters yet; its one key is yes.
	unscheduled = name + ".unscheduled"
	yes         = "yes"
	// defaultWorkers is how many Applications are worked on at the same time.
	defaultWorkers = 4
)

// SetupWithManager makes the reconciler run with mgr. ctx is needed for the time of the call only.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	histories, err := history.NewReader(ctx, mgr.GetFieldIndexer(), name, mgr.GetClient(), mgr.GetAPIReader())
	if err != nil {
		return fmt.Errorf("setting up release: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &shipper.Release{}, unscheduled, isUnscheduled); err != nil {
		return fmt.Errorf("indexing releases without clusters: %w", err)
	}
	r := &Reconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), histories: histories, charts: o.Charts,
		global: o.GlobalBlocksNamespace, clock: o.Clock, recorder: mgr.GetEventRecorder(fleet.UserAgent),
		judge: outcome.NewJudge(),
	}
	toApplication := handler.EnqueueRequestsFromMapFunc(applicationOf)
	meant := builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{},
		predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}, goingPredicate()))
	err = ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&shipper.Application{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&shipper.Release{}, toApplication, meant).
		Watches(&shipper.InstallationTarget{}, toApplication).
		Watches(&shipper.CapacityTarget{}, toApplication).
		Watches(&shipper.TrafficTarget{}, toApplication).
		Watches(&shipper.RolloutBlock{}, handler.EnqueueRequestsFromMapFunc(r.blockedBy), builder.WithPredicates(comeOrGone())).
		Watches(&shipper.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.withoutClusters),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers, RateLimiter: outcome.RateLimiter()}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up release: %w", err)
	}
	return nil
}

// applicationOf makes a request for the Application that an object belongs to.
func applicationOf(_ context.Context, o client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, app := range history.ApplicationOf(o) {
		out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: app}})
	}
	return out
}

// blockedBy makes a request for each Application that a RolloutBlock bears on.
func (r *Reconciler) blockedBy(ctx context.Context, o client.Object) []reconcile.Request {
	where := []client.ListOption{client.InNamespace(o.GetNamespace())}
	if o.GetNamespace() == r.global {
		where = nil
	}
	var apps shipper.ApplicationList
	if err := r.client.List(ctx, &apps, where...); err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the applications a block bears on", "rolloutBlock", o.GetName())
	}
	out := make([]reconcile.Request, len(apps.Items))
	for i := range apps.Items {
		out[i].NamespacedName = client.ObjectKeyFromObject(&apps.Items[i])
	}
	return out
}

// withoutClusters makes a request for each Application with a Release that has no clusters yet.
func (r *Reconciler) withoutClusters(ctx context.Context, _ client.Object) []reconcile.Request {
	var rels shipper.ReleaseList
	if err := r.client.List(ctx, &rels, client.MatchingFields{unscheduled: yes}); err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the releases that wait for clusters")
	}
	var out []reconcile.Request
	for i := range rels.Items {
		out = append(out, applicationOf(ctx, &rels.Items[i])...)
	}
	return out
}

func isUnscheduled(o client.Object) []string {
	if rel, ok := o.(*shipper.Release); ok && len(strategy.Clusters(rel)) == 0 {
		return []string{yes}
	}
	return nil
}

// goingPredicate lets through that an object begins to be deleted.
func goingPredicate() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	}}
}

// comeOrGone lets through that an object appears or disappears: what a block says does not matter.
func comeOrGone() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}
