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

// known are the UIDs of blocks as the API server has them; empty for those that are gone.
type known map[types.NamespacedName]types.UID

// clean takes a block that is gone out of the annotations that name it. Who overrides a new block may be heard of before
// the block itself: only the API server knows that it is gone.
func (r *Reconciler) clean(ctx context.Context, block types.NamespacedName, by namers) error {
	if !by.any() {
		return nil
	}
	there := known{}
	if err := r.look(ctx, there, block); err != nil {
		return err
	}
	if there[block] != "" {
		return nil // its own event comes
	}
	return r.sweep(ctx, there, by)
}

// sweep cleans all who name a block. One object that cannot be written does not keep the others from being cleaned.
func (r *Reconciler) sweep(ctx context.Context, there known, by namers) error {
	var met []error
	for i := range by.applications {
		met = append(met, r.cleanOne(ctx, there, &by.applications[i]))
	}
	for i := range by.releases {
		met = append(met, r.cleanOne(ctx, there, &by.releases[i]))
	}
	return errors.Join(met...)
}

// cleanOne takes every override that is one of no block any more out of one object, in one write: blocks that end
// together must not leave names behind that override the next blocks to be called so. Results are noted in known.
func (r *Reconciler) cleanOne(ctx context.Context, there known, object client.Object) error {
	was, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return nil
	}
	var rest, gone []types.NamespacedName
	for _, o := range rules.Overrides(object.GetAnnotations()) {
		if err := r.look(ctx, there, o.Name); err != nil {
			return err
		}
		if uid := there[o.Name]; uid == "" || (o.UID != "" && o.UID != uid) {
			gone = append(gone, o.Name)
		} else {
			rest = append(rest, o.Name)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	object.SetAnnotations(rules.Keep(object.GetAnnotations(), rest))
	patch := client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, object, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the override of %s from %s/%s: %w",
			rules.FormatOverrides(gone), object.GetNamespace(), object.GetName(), err)
	}
	return nil
}

// look notes in there whether a block exists, unless that is noted already.
func (r *Reconciler) look(ctx context.Context, there known, block types.NamespacedName) error {
	if _, noted := there[block]; noted {
		return nil
	}
	b := &shipper.RolloutBlock{}
	err := r.live.Get(ctx, block, b)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading RolloutBlock %s: %w", block, err)
	}
	there[block] = b.UID
	if apierrors.IsNotFound(err) {
		there[block] = ""
	}
	return nil
}
