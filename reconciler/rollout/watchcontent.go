// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/artifact"
)

// watchContent adds what requests passes because of resources: what is selected, and what is stored of it.
func (r *Reconciler) watchContent(to *builder.Builder) *builder.Builder {
	snapshot := &metav1.PartialObjectMetadata{}
	snapshot.SetGroupVersionKind(artifact.ResourcesKind())
	goes := predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
	appears := predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }}
	return to.WatchesRawSource(r.content).
		WatchesMetadata(snapshot, handler.EnqueueRequestsFromMapFunc(r.lost), builder.WithPredicates(goes)).
		WatchesMetadata(snapshot, handler.EnqueueRequestsFromMapFunc(ownersOf), builder.WithPredicates(appears))
}

// ownersOf makes requests for the Applications that stored content belongs to: a pass may have planned owners by a cache that lacked it.
func ownersOf(_ context.Context, o client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, owner := range o.GetOwnerReferences() {
		name := owner.Name
		switch owner.Kind {
		case "Application":
		case "Release":
			name = stamp.ApplicationName(name)
		default:
			continue
		}
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: name}})
	}
	return out
}

// lost makes requests for the Applications whose stored content was deleted, and makes them read it again.
func (r *Reconciler) lost(ctx context.Context, o client.Object) []reconcile.Request {
	var apps shipper.ApplicationList
	if err := r.client.List(ctx, &apps, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has all Applications
	}
	var out []reconcile.Request
	for i := range apps.Items {
		app := &apps.Items[i]
		if is := app.Status.Resources; is == nil || !isPartOf(o.GetName(), is.Digest) {
			continue
		}
		key := client.ObjectKeyFromObject(app)
		r.content.Changed(key)
		out = append(out, reconcile.Request{NamespacedName: key})
	}
	return out
}

// isPartOf reports whether a ResourceSnapshot of that name has content with a digest.
func isPartOf(name, digest string) bool {
	first := shipper.ResourceSnapshotName(digest, 1)
	return strings.HasPrefix(name, first[:len(first)-1])
}
