// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/values"
)

// Replicas is the number of Pods of a Release of this chart in a cluster at full capacity.
func (c *Chart) Replicas(ctx context.Context, rel *shipper.Release, layers values.Layers, in Cluster) (int32, error) {
	values, err := layers.At(in.Place)
	if err != nil {
		return 0, err
	}
	manifest, err := c.Render(ctx, values, targetOf(rel, in))
	if err != nil {
		return 0, err
	}
	return manifest.Replicas(), nil
}
