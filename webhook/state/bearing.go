// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/override"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// maxBearingLists bounds how many dry runs read ResourceOverrides at the same time: each has a page of whole ones in memory.
const maxBearingLists = 2

// OverridesBearing are the copies that a Release of app would have now, in the order in which they are applied, read from the API server.
// Their rules say which clusters they are for, and nothing else. mandatoryAlone leaves out the others. More copies than a Release may keep
// are an error.
func (f *Reader) OverridesBearing(
	ctx context.Context, app *shipper.Application, mandatoryAlone bool,
) ([]shipper.ReleaseOverride, error) {
	if f.live == nil || app.Namespace == "" {
		return nil, nil
	}
	select {
	case f.bearing <- struct{}{}:
		defer func() { <-f.bearing }()
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for other dry runs to read theirs: %w", ctx.Err())
	}
	namespaces := []string{app.Namespace}
	if f.globalNamespace != "" && f.globalNamespace != app.Namespace {
		namespaces = append(namespaces, f.globalNamespace)
	}
	var all []shipper.ResourceOverride
	var room override.Room
	for _, namespace := range namespaces {
		bearing, err := f.listBearing(ctx, app, namespace, mandatoryAlone, &room)
		if err != nil {
			return nil, err
		}
		all = append(all, bearing...)
	}
	return override.Bearing(app, all, f.globalNamespace), nil
}

// listBearing reads a namespace by pages, and keeps what says in which clusters and in which order ResourceOverrides bear on app.
func (f *Reader) listBearing(
	ctx context.Context, app *shipper.Application, namespace string, mandatoryAlone bool, room *override.Room,
) ([]shipper.ResourceOverride, error) {
	var out []shipper.ResourceOverride
	for next, more := "", true; more; more = next != "" {
		var page shipper.ResourceOverrideList
		err := f.live.List(ctx, &page, client.InNamespace(namespace), client.Limit(overridesInPage), client.Continue(next))
		if err != nil {
			return nil, fmt.Errorf("listing the ResourceOverrides of namespace %s: %w", namespace, err)
		}
		next = page.Continue
		for i := range page.Items {
			o := &page.Items[i]
			mandatory := override.IsMandatory(o, f.globalNamespace)
			if mandatoryAlone && !mandatory || !override.Bears(o, app, f.globalNamespace) {
				continue
			}
			outline := override.OutlineOf(o, f.globalNamespace)
			room.Add(mandatory, outline.Size)
			kept := outline.ResourceOverride
			kept.Spec.Priority = o.Spec.Priority
			for _, rule := range o.Spec.Rules {
				kept.Spec.Rules = append(kept.Spec.Rules, shipper.OverrideRule{ClusterTerms: rule.ClusterTerms})
			}
			out = append(out, kept)
		}
		if err := room.Check(); err != nil {
			return nil, err
		}
	}
	return out, nil
}
