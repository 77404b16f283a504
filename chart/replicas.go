// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Replicas is how many Pods a Release has when all of it runs: it fetches the Release's chart, unless that is known
// already. Errors are *Error, or the context's.
func (c *Catalog) Replicas(ctx context.Context, rel *shipper.Release) (int32, error) {
	loaded, err := c.Load(ctx, rel.Namespace, rel.Spec.Environment.Chart, rel.Annotations[shipper.ReleaseChartDigestAnnotation])
	if err != nil {
		return 0, err
	}
	return loaded.Replicas(ctx, rel)
}

// Replicas is how many Pods a Release of this chart has when all of it runs. It renders as for any cluster, because how many
// Pods there are does not depend on where they are.
func (c *Chart) Replicas(ctx context.Context, rel *shipper.Release) (int32, error) {
	manifest, err := c.Render(ctx, rel.Spec.Environment.Values, Target{
		ReleaseName: rel.Name, Namespace: rel.Namespace, App: rel.Labels[shipper.AppLabel],
		HelmWorkaround: rel.Labels[shipper.HelmWorkaroundLabel], Labels: rel.Labels,
	})
	if err != nil {
		return 0, err
	}
	return manifest.Replicas(), nil
}
