// SPDX-License-Identifier: Apache-2.0

package member

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/member/resources"
)

// placedBy are the targets with resources of an Application that are or were in a cluster.
func (r *Reconciler) placedBy(ctx context.Context, app types.NamespacedName, cluster string) []*shipper.InstallationTarget {
	var out []*shipper.InstallationTarget
	r.inCluster(ctx, &shipper.InstallationTargetList{}, cluster, func(o client.Object) {
		if it, ok := o.(*shipper.InstallationTarget); ok && it.Spec.Resources != nil {
			out = append(out, it)
		}
	}, client.InNamespace(app.Namespace), client.MatchingLabels{shipper.AppLabel: app.Name})
	return out
}

// placedChanged is about objects of any namespace that an Application placed.
func (r *Reconciler) placedChanged(ctx context.Context, e fleet.Event, app types.NamespacedName) {
	if cm, ok := e.Object().(*corev1.ConfigMap); ok && fleet.IsAnchor(cm) {
		return // it has a handler of its own
	}
	by := r.placedBy(ctx, app, e.Cluster)
	judged := func(it *shipper.InstallationTarget) bool { return resources.Judges(it, e.Object()) }
	switch w := placingOf(app, e.Cluster); {
	case len(by) == 0:
	case resources.Gone(e):
		r.queues.add(w)
	case e.HealthChanged() || slices.ContainsFunc(by, judged) || r.installation.Edited(ctx, e, app.Namespace):
		r.queues.addAfter(w, fleet.Settling)
	}
}

// placedAnchorChanged is about the anchors of Applications with resources.
func (r *Reconciler) placedAnchorChanged(ctx context.Context, e fleet.Event, app types.NamespacedName) {
	if (resources.Gone(e) || r.fleet.ClaimChanged(e)) && len(r.placedBy(ctx, app, e.Cluster)) > 0 {
		r.put(placingOf(app, e.Cluster), e.Initial)
	}
}

// placingOf is the work on the targets with resources of an Application in a cluster.
func placingOf(app types.NamespacedName, cluster string) work {
	return work{Key: Key{Cluster: cluster, Namespace: app.Namespace, App: app.Name}}
}

// keyOf is the work on a target in a cluster.
func keyOf(o client.Object, cluster string) work {
	it, ok := o.(*shipper.InstallationTarget)
	if !ok {
		return podsOf(o, cluster)
	}
	app := it.Labels[shipper.AppLabel]
	if it.Spec.Resources != nil {
		return placingOf(types.NamespacedName{Namespace: it.Namespace, Name: app}, cluster)
	}
	return work{Key{cluster, it.Namespace, cmp.Or(app, it.Name), false}, it.Name}
}

// podsOf is the work on Pods and traffic that something of an Application causes.
func podsOf(o client.Object, cluster string) work {
	return work{Key: Key{cluster, o.GetNamespace(), o.GetLabels()[shipper.AppLabel], true}}
}
