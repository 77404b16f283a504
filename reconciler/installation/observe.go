// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/reconciler/fleet"
)

// targetsIn are the InstallationTargets that are or were in a cluster.
func (r *Reconciler) targetsIn(ctx context.Context, cluster string) []reconcile.Request {
	return r.requests(ctx, cluster)
}

// namespaceChanged wakes the targets of a namespace that appeared or goes in a cluster.
func (r *Reconciler) namespaceChanged(ctx context.Context, e fleet.Event) []reconcile.Request {
	return r.requests(ctx, e.Cluster, client.InNamespace(e.Object().GetName()))
}

// installedChanged wakes targets when an installed object is gone or no longer marked as it was. What else changes
// in it is not ours to judge. Any target of the Application may have to bring back what is gone.
func (r *Reconciler) installedChanged(ctx context.Context, e fleet.Event) []reconcile.Request {
	app := e.Object().GetLabels()[shipper.AppLabel]
	if e.Old == nil || app == "" || e.New != nil && sameMark(e.Old, e.New) {
		return nil
	}
	of := []client.ListOption{client.MatchingLabels{shipper.AppLabel: app}}
	if namespace := e.Object().GetNamespace(); namespace != "" {
		of = append(of, client.InNamespace(namespace))
	}
	return r.requests(ctx, e.Cluster, of...)
}

// hookChanged wakes the target whose hook an object is. Of its status the cache knows nothing, so any change may be its end.
func hookChanged(_ context.Context, e fleet.Event) []reconcile.Request {
	object := e.Object()
	target := object.GetLabels()[shipper.OwnedByLabel]
	if object.GetAnnotations()[shipper.HookRunAnnotation] == "" || target == "" || object.GetNamespace() == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: target}}}
}

// ordered are the Releases that ask something else of their hooks than before.
func ordered() predicate.Predicate {
	asks := func(o client.Object, key string) string { return o.GetAnnotations()[key] }
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return asks(e.ObjectOld, shipper.ReleaseHooksRetryAnnotation) != asks(e.ObjectNew, shipper.ReleaseHooksRetryAnnotation) ||
				asks(e.ObjectOld, shipper.ReleaseTestAnnotation) != asks(e.ObjectNew, shipper.ReleaseTestAnnotation)
		},
	}
}

// sameMark reports whether all that decide looks at is the same in both.
func sameMark(a, b client.Object) bool {
	digest := shipper.InstalledDigestAnnotation
	return a.GetLabels()[shipper.OwnedByLabel] == b.GetLabels()[shipper.OwnedByLabel] &&
		a.GetAnnotations()[digest] == b.GetAnnotations()[digest] &&
		a.GetAnnotations()[chart.ResourcePolicyAnnotation] == b.GetAnnotations()[chart.ResourcePolicyAnnotation] &&
		(a.GetDeletionTimestamp() == nil) == (b.GetDeletionTimestamp() == nil) &&
		reflect.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences())
}

// anchorChanged wakes the target of an anchor that is gone or going. Changes of its data are our own.
func anchorChanged(_ context.Context, e fleet.Event) []reconcile.Request {
	cm, ok := e.Object().(*corev1.ConfigMap)
	if !ok || !fleet.IsAnchor(cm) || e.New != nil && cm.DeletionTimestamp == nil {
		return nil
	}
	name := strings.TrimSuffix(cm.Name, anchorSuffix)
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: cm.Namespace, Name: name}}}
}

// claimChanged wakes the targets of an Application that another management cluster took or gave up.
func (r *Reconciler) claimChanged(ctx context.Context, e fleet.Event) []reconcile.Request {
	of := client.MatchingLabels{shipper.AppLabel: e.Object().GetLabels()[shipper.AppLabel]}
	return r.requests(ctx, e.Cluster, client.InNamespace(e.Object().GetNamespace()), of)
}

// requests are for the targets among those listed that are or were in a cluster.
func (r *Reconciler) requests(ctx context.Context, cluster string, of ...client.ListOption) []reconcile.Request {
	var targets shipper.InstallationTargetList
	if err := r.client.List(ctx, &targets, of...); err != nil {
		return nil
	}
	var out []reconcile.Request
	for i := range targets.Items {
		if it := &targets.Items[i]; slices.Contains(clusterNames(it), cluster) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(it)})
		}
	}
	return out
}
