// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/override"
	"shipper.dev/shipper/chart/values"
)

// Replicas is the number of Pods of a Release of this chart in a cluster at full capacity.
func (c *Chart) Replicas(ctx context.Context, rel *shipper.Release, layers values.Layers, in Cluster) (int32, error) {
	values, err := layers.At(in.Place)
	if err != nil {
		return 0, err
	}
	t := targetOf(rel, in)
	manifest, err := c.Render(ctx, values, t)
	if override.Failed(err) { // the installation reports it; other clusters get their Pods
		t.Overrides = nil
		manifest, err = c.Render(ctx, values, t)
	}
	if err != nil {
		return 0, err
	}
	return manifest.Replicas(), nil
}
