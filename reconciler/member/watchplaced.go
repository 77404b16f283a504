// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/member/resources"
)

// placedBy calls do for the targets with resources of an Application that are or were in a cluster.
func (r *Reconciler) placedBy(ctx context.Context, app types.NamespacedName, cluster string, do func(it *shipper.InstallationTarget)) {
	r.inCluster(ctx, &shipper.InstallationTargetList{}, cluster, func(o client.Object) {
		if it, ok := o.(*shipper.InstallationTarget); ok && it.Spec.Resources != nil {
			do(it)
		}
	}, client.InNamespace(app.Namespace), client.MatchingLabels{shipper.AppLabel: app.Name})
}

// siblingsOf has a pass made of the other targets of an Application in a cluster that a target lists or listed: another one may be the
// newest there now.
func (r *Reconciler) siblingsOf(ctx context.Context, of *shipper.InstallationTarget, cluster string) {
	app := types.NamespacedName{Namespace: of.Namespace, Name: of.Labels[shipper.AppLabel]}
	r.placedBy(ctx, app, cluster, func(it *shipper.InstallationTarget) {
		if it.Name != of.Name {
			r.queues.add(keyOf(it, cluster))
		}
	})
}

// placedChanged is about objects of any namespace that an Application placed.
func (r *Reconciler) placedChanged(ctx context.Context, e fleet.Event, app types.NamespacedName) {
	if cm, ok := e.Object().(*corev1.ConfigMap); ok && fleet.IsAnchor(cm) {
		return // it has a handler of its own
	}
	gone := resources.Gone(e)
	r.placedBy(ctx, app, e.Cluster, func(it *shipper.InstallationTarget) {
		switch key := keyOf(it, e.Cluster); {
		case gone:
			r.queues.add(key)
		case e.HealthChanged() || resources.Judges(it, e.Object()) || r.installation.Edited(ctx, e, app.Namespace):
			r.queues.addAfter(key, fleet.Settling)
		}
	})
}

// placedAnchorChanged is about the anchors of Applications with resources.
func (r *Reconciler) placedAnchorChanged(ctx context.Context, e fleet.Event, app types.NamespacedName) {
	if !resources.Gone(e) && !r.fleet.ClaimChanged(e) {
		return
	}
	r.placedBy(ctx, app, e.Cluster, func(it *shipper.InstallationTarget) { r.put(keyOf(it, e.Cluster), e.Initial) })
}
