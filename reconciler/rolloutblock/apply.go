// SPDX-License-Identifier: Apache-2.0

package rolloutblock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rules "shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// clean takes a block that is gone out of the annotations that name it. One object that cannot be written does not keep
// the others from being cleaned. Who overrides a new block may be heard of before the block itself: only the API server
// knows that it is gone.
func (r *Reconciler) clean(ctx context.Context, block types.NamespacedName, by namers) error {
	if len(by.applications)+len(by.releases) == 0 {
		return nil
	}
	err := r.live.Get(ctx, block, &shipper.RolloutBlock{})
	if err == nil {
		return nil // its own event comes
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading RolloutBlock %s: %w", block, err)
	}
	var met []error
	for i := range by.applications {
		met = append(met, r.cleanOne(ctx, block, &by.applications[i]))
	}
	for i := range by.releases {
		met = append(met, r.cleanOne(ctx, block, &by.releases[i]))
	}
	return errors.Join(met...)
}

func (r *Reconciler) cleanOne(ctx context.Context, block types.NamespacedName, object client.Object) error {
	was, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return nil
	}
	rest := slices.DeleteFunc(overrides(object), func(name types.NamespacedName) bool { return name == block })
	annotations := object.GetAnnotations()
	if len(rest) == 0 {
		delete(annotations, shipper.RolloutBlockOverrideAnnotation)
	} else {
		annotations[shipper.RolloutBlockOverrideAnnotation] = rules.FormatOverrides(rest)
	}
	object.SetAnnotations(annotations)
	patch := client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, object, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the override of %s from %s/%s: %w", block, object.GetNamespace(), object.GetName(), err)
	}
	return nil
}
