// SPDX-License-Identifier: Apache-2.0

package rolloutblock

import (
	"context"
	"errors"
	"fmt"

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
	missing := map[types.NamespacedName]bool{}
	if err := r.look(ctx, missing, block); err != nil {
		return err
	}
	if !missing[block] {
		return nil // its own event comes
	}
	var met []error
	for i := range by.applications {
		met = append(met, r.cleanOne(ctx, missing, &by.applications[i]))
	}
	for i := range by.releases {
		met = append(met, r.cleanOne(ctx, missing, &by.releases[i]))
	}
	return errors.Join(met...)
}

// cleanOne takes every block that is gone out of one annotation, in one write: blocks that end together must not leave
// names behind that override the next blocks to be called so. What is found out is noted in missing.
func (r *Reconciler) cleanOne(ctx context.Context, missing map[types.NamespacedName]bool, object client.Object) error {
	was, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return nil
	}
	var rest, gone []types.NamespacedName
	for _, name := range overrides(object) {
		if err := r.look(ctx, missing, name); err != nil {
			return err
		}
		if missing[name] {
			gone = append(gone, name)
		} else {
			rest = append(rest, name)
		}
	}
	annotations := object.GetAnnotations()
	if len(rest) == 0 {
		delete(annotations, shipper.RolloutBlockOverrideAnnotation)
	} else {
		annotations[shipper.RolloutBlockOverrideAnnotation] = rules.FormatOverrides(rest)
	}
	object.SetAnnotations(annotations)
	patch := client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, object, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the override of %s from %s/%s: %w", rules.FormatOverrides(gone), object.GetNamespace(), object.GetName(), err)
	}
	return nil
}

// look notes in missing whether the block is gone, unless that is noted already.
func (r *Reconciler) look(ctx context.Context, missing map[types.NamespacedName]bool, block types.NamespacedName) error {
	if _, noted := missing[block]; noted {
		return nil
	}
	err := r.live.Get(ctx, block, &shipper.RolloutBlock{})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading RolloutBlock %s: %w", block, err)
	}
	missing[block] = apierrors.IsNotFound(err)
	return nil
}
