// SPDX-License-Identifier: Apache-2.0

// Package predicates maps events to the Applications that they concern, and drops the events that concern none.
package predicates

import (
	"context"
	"slices"

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
	"shipper.dev/shipper/reconciler/history"
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

// SpecOrMetaChanged passes changes of what users request, not of status: changes of spec, annotations, labels, owners and finalizers,
// and that it comes, is to go, or is gone. A deletion waits for other finalizers to go.
func SpecOrMetaChanged() builder.Predicates { return builder.WithPredicates(specOrMeta()) }

func specOrMeta() predicate.Predicate {
	life := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
			!slices.Equal(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers()) ||
			!equality.Semantic.DeepEqual(e.ObjectOld.GetOwnerReferences(), e.ObjectNew.GetOwnerReferences())
	}}
	return predicate.Or(predicate.GenerationChangedPredicate{},
		predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}, life)
}

// ClusterFactsChanged passes changes of what every placement judges a Cluster by: its spec, whether it is ready and has joined, and that
// it comes, is to go, or is gone. Heartbeats change none of these.
func ClusterFactsChanged() builder.Predicates {
	return builder.WithPredicates(predicate.Funcs{UpdateFunc: clusterChanged(clusterFacts)})
}

// ClusterPropertiesChanged passes changes of what some placements name: the labels of a Cluster, its properties, and what its nodes have.
func ClusterPropertiesChanged() builder.Predicates {
	return builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: clusterChanged(clusterProperties),
	})
}

// clusterChanged reports whether a part of a Cluster changed.
func clusterChanged(part func(*shipper.Cluster) shipper.Cluster) func(event.UpdateEvent) bool {
	return func(e event.UpdateEvent) bool {
		was, ok := e.ObjectOld.(*shipper.Cluster)
		is, ok2 := e.ObjectNew.(*shipper.Cluster)
		return ok && ok2 && !equality.Semantic.DeepEqual(part(was), part(is))
	}
}

// clusterFacts is what every placement judges a Cluster by.
func clusterFacts(c *shipper.Cluster) shipper.Cluster {
	out := shipper.Cluster{Spec: c.Spec}
	out.DeletionTimestamp, out.UID, out.Spec.Properties = c.DeletionTimestamp, c.UID, nil
	for _, known := range placement.StatusOf(c.Status).Conditions { // times and messages are not judged
		out.Status.Conditions = append(out.Status.Conditions, shipper.Condition{Type: known.Type, Status: known.Status, Reason: known.Reason})
	}
	return out
}

// clusterProperties is what else a placement may judge a Cluster by.
func clusterProperties(c *shipper.Cluster) shipper.Cluster {
	out := shipper.Cluster{Status: placement.StatusOf(c.Status)}
	out.Labels, out.Spec.Properties, out.Status.Conditions = c.Labels, c.Spec.Properties, nil
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
