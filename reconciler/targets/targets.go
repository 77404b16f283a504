// SPDX-License-Identifier: Apache-2.0

// Package targets says how long an InstallationTarget, a CapacityTarget or a TrafficTarget is in effect: as long as its Release is
// there, also when the target itself or the Release was deleted. Finalizers keep both until the Release may go.
package targets

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Ended reports whether a target is no longer in effect: the Release that owns it is gone, or is being deleted and not kept by
// shipper.RolloutFinalizer. A target that no Release owns ends when it is deleted.
func Ended(ctx context.Context, from client.Reader, target client.Object) (bool, error) {
	for _, owner := range target.GetOwnerReferences() {
		if owner.APIVersion != shipper.GroupVersion.String() || owner.Kind != "Release" {
			continue
		}
		var rel shipper.Release
		key := client.ObjectKey{Namespace: target.GetNamespace(), Name: owner.Name}
		if err := from.Get(ctx, key, &rel); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("reading Release %s: %w", owner.Name, err)
		}
		gone := rel.UID != owner.UID // also when there is none, for then it has no UID
		return gone || rel.DeletionTimestamp != nil && !controllerutil.ContainsFinalizer(&rel, shipper.RolloutFinalizer), nil
	}
	return target.GetDeletionTimestamp() != nil, nil
}

// End reports whether a target was deleted and is no longer in effect, and removes Shipper's finalizers from it then.
func End(ctx context.Context, c client.Client, target client.Object) (bool, error) {
	if target.GetDeletionTimestamp() == nil {
		return false, nil
	}
	ended, err := Ended(ctx, c, target)
	if err != nil || !ended {
		return false, err
	}
	return true, Release(ctx, c, target)
}

// Release removes Shipper's finalizers from a target.
func Release(ctx context.Context, c client.Client, target client.Object) error {
	was, ok := target.DeepCopyObject().(client.Object)
	if !ok || !removeFinalizers(target) {
		return nil
	}
	patch := client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(c.Patch(ctx, target, patch)); err != nil {
		return fmt.Errorf("removing the finalizer from %T %s: %w", target, target.GetName(), err)
	}
	return nil
}

func removeFinalizers(target client.Object) bool {
	removed := controllerutil.RemoveFinalizer(target, shipper.RolloutFinalizer)
	return controllerutil.RemoveFinalizer(target, shipper.InstallationFinalizer) || removed
}

// ReleaseGone passes the event that a Release is gone, after which its targets end.
var ReleaseGone predicate.Predicate = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(event.UpdateEvent) bool { return false },
}
