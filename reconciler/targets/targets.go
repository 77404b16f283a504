// SPDX-License-Identifier: Apache-2.0

// Package targets says how long an InstallationTarget, a CapacityTarget or a TrafficTarget is in effect: as long as its Release is
// there, also when the target itself or the Release was deleted. Finalizers keep both until the Release may go.
package targets

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

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

// OfApplication lists the targets of an Application into list; without a name those that name no Application.
func OfApplication(ctx context.Context, from client.Reader, list client.ObjectList, namespace, app string) error {
	var of client.ListOption = client.MatchingLabels{shipper.AppLabel: app}
	if app == "" {
		none, err := labels.NewRequirement(shipper.AppLabel, selection.DoesNotExist, nil)
		if err != nil {
			return fmt.Errorf("selecting targets without an Application: %w", err)
		}
		of = client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*none)}
	}
	if err := from.List(ctx, list, client.InNamespace(namespace), of); err != nil {
		return fmt.Errorf("listing the targets of %s: %w", app, err)
	}
	return nil
}
