// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/override"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// overridesInPage bounds how many whole ResourceOverrides are in memory: they have 64 KiB each, and metadata.
const overridesInPage = 50

// copyOverrides gives a new Release the ResourceOverrides that bear on its Application now. A rollback has those of the Release that it
// restores, but the mandatory ones of now. They are read from the API server: a user applies them and the Application together, and a cache
// may show the latter first.
func (r *pass) copyOverrides(ctx context.Context, s *scope, rel *shipper.Release) error {
	var all []shipper.ResourceOverride
	goal := stamp.RestoredBy(stamp.Own(s.app, s.history.All), rel)
	namespaces := []string{s.app.Namespace}
	if r.global != "" && r.global != s.app.Namespace {
		namespaces = append(namespaces, r.global)
	}
	for _, namespace := range namespaces {
		bearing, err := r.listBearing(ctx, s.app, namespace, goal != nil)
		if err != nil {
			return err
		}
		all = append(all, bearing...)
	}
	rel.Spec.Overrides = override.Bearing(s.app, all, r.global)
	if goal != nil {
		rel.Spec.Overrides = override.Restored(goal.Spec.Overrides, rel.Spec.Overrides)
	}
	return override.CheckSize(rel.Spec.Overrides)
}

// listBearing reads a namespace by pages, and keeps the ResourceOverrides that bear on an Application, or the mandatory ones of these. It
// ends with an error when they are more than a Release may keep: the rest would be read in vain.
func (r *pass) listBearing(
	ctx context.Context, app *shipper.Application, namespace string, mandatoryAlone bool,
) ([]shipper.ResourceOverride, error) {
	var out []shipper.ResourceOverride
	var room override.Room
	for next, more := "", true; more; more = next != "" {
		var page shipper.ResourceOverrideList
		err := r.live.List(ctx, &page, client.InNamespace(namespace), client.Limit(overridesInPage), client.Continue(next))
		if err != nil {
			return nil, fmt.Errorf("listing resource overrides in namespace %s: %w", namespace, err)
		}
		next = page.Continue
		for i := range page.Items {
			o := &page.Items[i]
			mandatory := override.IsMandatory(o, r.global)
			if mandatoryAlone && !mandatory || !override.Bears(o, app, r.global) {
				continue
			}
			kept := shipper.ResourceOverride{Spec: o.Spec}
			kept.Namespace, kept.Name = o.Namespace, o.Name
			kept.Annotations = map[string]string{}
			for _, key := range []string{shipper.OverrideRequestedByAnnotation, shipper.OverrideEarlierWritersAnnotation} {
				kept.Annotations[key] = o.Annotations[key]
			}
			out = append(out, kept)
			room.Add(mandatory, override.OutlineOf(o, r.global).Size)
		}
		if err := room.Check(); err != nil {
			return nil, err
		}
	}
	return out, nil
}
