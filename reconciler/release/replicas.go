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

// Source is where charts come from.
type Source interface {
	chart.Loader
	chart.Verifier
}

// counter counts replicas in charts, and asks who signed them.
type counter struct{ charts Source }

// NewCharts returns Charts that come from a source.
func NewCharts(charts Source) Charts { return counter{charts: charts} }

// Verify is Charts.
func (c counter) Verify(ctx context.Context, rel *shipper.Release) (shipper.ChartSignature, error) {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	return c.charts.Verify(ctx, rel.Namespace, rel.Spec.Environment.Chart, rel.Annotations[shipper.ReleaseChartDigestAnnotation])
}

// Replicas is Charts.
func (c counter) Replicas(ctx context.Context, rel *shipper.Release, in chart.Place) (int32, error) {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	digest := rel.Annotations[shipper.ReleaseChartDigestAnnotation]
	loaded, err := c.charts.Load(ctx, rel.Namespace, rel.Spec.Environment.Chart, digest)
	if err != nil {
		return 0, err
	}
	return loaded.Replicas(ctx, rel, in)
}
