// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"time"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
)

// countTimeout bounds how long one Application keeps a worker busy with its chart. A download goes on after it, so
// that a later pass finds it done.
const countTimeout = 5 * time.Second

// catalog counts replicas in charts of a catalog.
type catalog struct{ charts *chart.Catalog }

// NewCharts returns Charts that come from a catalog.
func NewCharts(charts *chart.Catalog) Charts { return catalog{charts: charts} }

// Replicas is Charts.
func (c catalog) Replicas(ctx context.Context, rel *shipper.Release) (int32, error) {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	return c.charts.Replicas(ctx, rel)
}
