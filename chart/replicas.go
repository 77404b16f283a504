// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Replicas is how many Pods a Release has in a place when all of it runs: it fetches the Release's chart, unless that is known
// already. Errors are *Error, or the context's.
func (c *Catalog) Replicas(ctx context.Context, rel *shipper.Release, in Place) (int32, error) {
	loaded, err := c.Load(ctx, rel.Namespace, rel.Spec.Environment.Chart, rel.Annotations[shipper.ReleaseChartDigestAnnotation])
	if err != nil {
		return 0, err
	}
	return loaded.Replicas(ctx, rel, LayersOf(&rel.Spec.Environment), in)
}

// Replicas is how many Pods a Release of this chart has in a place when all of it runs, with its values. It renders as for any cluster:
// how many Pods there are depends on where they are by the values alone.
func (c *Chart) Replicas(ctx context.Context, rel *shipper.Release, layers Layers, in Place) (int32, error) {
	values, err := layers.At(in)
	if err != nil {
		return 0, err
	}
	manifest, err := c.Render(ctx, values, Target{
		ReleaseName: rel.Name, Namespace: rel.Namespace, App: rel.Labels[shipper.AppLabel],
		HelmWorkaround: rel.Labels[shipper.HelmWorkaroundLabel], Labels: rel.Labels,
	})
	if err != nil {
		return 0, err
	}
	return manifest.Replicas(), nil
}
