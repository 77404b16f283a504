// SPDX-License-Identifier: Apache-2.0

// Package predicates maps events to the Applications that they concern, and drops the events that concern none.
package predicates

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/rollout/history"
)

// EnqueueForApplication wakes the Application that an object says it belongs to.
func EnqueueForApplication() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(Requests)
}

// Requests are for the Application that an object says it belongs to.
func Requests(_ context.Context, o client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, app := range history.ApplicationOf(o) {
		out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: app}})
	}
	return out
}

// EnqueueForBlock wakes the Applications that a RolloutBlock bears on; those in global bear on all.
func EnqueueForBlock(from client.Reader, global string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		where := []client.ListOption{client.InNamespace(o.GetNamespace())}
		if o.GetNamespace() == global {
			where = nil
		}
		var apps shipper.ApplicationList
		if err := from.List(ctx, &apps, where...); err != nil {
			log.FromContext(ctx).Error(err, "Cannot find the applications a block bears on", "rolloutBlock", o.GetName())
		}
		out := make([]reconcile.Request, len(apps.Items))
		for i := range apps.Items {
			out[i].NamespacedName = client.ObjectKeyFromObject(&apps.Items[i])
		}
		return append(out, ofDeleted(ctx, from, where)...)
	})
}

// ofDeleted wakes the Applications of Releases that are being deleted, which may be gone themselves.
func ofDeleted(ctx context.Context, from client.Reader, where []client.ListOption) []reconcile.Request {
	var rels shipper.ReleaseList
	if err := from.List(ctx, &rels, append(where, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the releases being deleted that a block bears on")
	}
	var out []reconcile.Request
	for i := range rels.Items {
		if rel := &rels.Items[i]; !rel.DeletionTimestamp.IsZero() {
			out = append(out, Requests(ctx, rel)...)
		}
	}
	return out
}

// SpecOrMetaChanged passes changes of what users request, not of status: changes of spec, annotations and
// labels, and that it comes, is to go, or is gone.
func SpecOrMetaChanged() builder.Predicates {
	going := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	}}
	return builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{},
		predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}, going))
}

// ClusterFactsChanged passes changes of what placement judges a Cluster by: its labels and spec, whether it is ready and has joined, what
// its nodes have, its properties and version, and that it comes, is to go, or is gone. Heartbeats change none of these.
func ClusterFactsChanged() builder.Predicates {
	return builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok := e.ObjectOld.(*shipper.Cluster)
		is, ok2 := e.ObjectNew.(*shipper.Cluster)
		return ok && ok2 && clusterFactsChanged(was, is)
	}})
}

func clusterFactsChanged(was, is *shipper.Cluster) bool {
	return !equality.Semantic.DeepEqual(clusterFacts(was), clusterFacts(is))
}

// clusterFacts is a Cluster without what placement does not judge it by.
func clusterFacts(c *shipper.Cluster) shipper.Cluster {
	out := shipper.Cluster{Spec: c.Spec}
	out.Labels, out.DeletionTimestamp, out.UID = c.Labels, c.DeletionTimestamp, c.UID
	out.Status = placement.StatusOf(c.Status)
	for i, known := range out.Status.Conditions { // times and messages are not judged
		out.Status.Conditions[i] = shipper.Condition{Type: known.Type, Status: known.Status, Reason: known.Reason}
	}
	return out
}

// BlockActiveChanged lets through that a RolloutBlock appears, disappears, is changed, or comes into effect or ceases to be in effect.
func BlockActiveChanged() builder.Predicates {
	turned := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok := e.ObjectOld.(*shipper.RolloutBlock)
		is, ok2 := e.ObjectNew.(*shipper.RolloutBlock)
		return ok && ok2 && !ptr.Equal(was.Status.Active, is.Status.Active)
	}}
	return builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, turned))
}
