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

// sameMark tells whether all that decide looks at is the same in both.
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
