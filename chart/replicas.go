// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Replicas is how many Pods a Release has when all of it runs: it fetches the Release's chart, unless that is known
// already, and renders it as for any cluster, because how many Pods there are does not depend on where they are. Errors
// are *Error, or the context's.
func (c *Catalog) Replicas(ctx context.Context, rel *shipper.Release) (int32, error) {
	env := &rel.Spec.Environment
	loaded, err := c.Load(ctx, env.Chart, rel.Annotations[shipper.ReleaseChartDigestAnnotation])
	if err != nil {
		return 0, err
	}
	manifest, err := loaded.Render(ctx, env.Values, Target{
		ReleaseName: rel.Name, Namespace: rel.Namespace, App: rel.Labels[shipper.AppLabel],
		HelmWorkaround: rel.Labels[shipper.HelmWorkaroundLabel], Labels: rel.Labels,
	})
	if err != nil {
		return 0, err
	}
	return manifest.Replicas(), nil
}
