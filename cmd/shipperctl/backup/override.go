// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// overrides says again which RolloutBlocks objects override, now that those are there.
func (r *restorer) overrides(ctx context.Context, b Backup) error {
	var overriding []*object
	for _, e := range b {
		if e.Application == nil {
			continue
		}
		for _, o := range append([]*object{e.Application}, releasesOf(e)...) {
			if o.GetAnnotations()[shipper.RolloutBlockOverrideAnnotation] != "" {
				overriding = append(overriding, o)
			}
		}
	}
	if len(overriding) == 0 {
		return nil
	}
	all, err := list(ctx, r.client, blockKind)
	if err != nil {
		return err
	}
	blocks := map[types.NamespacedName]types.UID{}
	for i := range all {
		blocks[key(&all[i])] = all[i].GetUID()
	}
	var problems []error
	for _, was := range overriding {
		problems = append(problems, r.override(ctx, was, overridesOf(was, blocks)))
	}
	return errors.Join(problems...)
}

// override writes the annotations of one object, unless it says already that it overrides something.
func (r *restorer) override(ctx context.Context, was *object, want map[string]string) error {
	live, err := get(ctx, r.client, was.GroupVersionKind(), key(was))
	if err != nil || live == nil || len(want) == 0 || live.GetAnnotations()[shipper.RolloutBlockOverrideAnnotation] != "" {
		return err
	}
	before := live.DeepCopy()
	annotations := live.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	for k, v := range want {
		annotations[k] = v
	}
	live.SetAnnotations(annotations)
	if err := r.client.Patch(ctx, live, client.MergeFrom(before), client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("restoring what %s overrides: %w", describe(live), err)
	}
	r.progressf("%s overrides %s again", describe(live), want[shipper.RolloutBlockOverrideAnnotation])
	return nil
}

func releasesOf(e Entry) []*object {
	var out []*object
	for _, r := range e.Releases {
		out = append(out, r.Release)
	}
	return out
}
