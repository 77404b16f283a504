// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/values"
)

// Replicas is the number of Pods of a Release in a place at full capacity. It fetches the Release's chart if necessary. Errors
// are *chart.Error, or the context's.
func (c *Catalog) Replicas(ctx context.Context, rel *shipper.Release, in values.Place) (int32, error) {
	loaded, err := c.Load(ctx, rel.Namespace, rel.Spec.Environment.Chart, rel.Annotations[shipper.ReleaseChartDigestAnnotation])
	if err != nil {
		return 0, err
	}
	return loaded.Replicas(ctx, rel, values.LayersOf(&rel.Spec.Environment), in)
}

// Judge renders a Release as for an installation in a place, and fetches its chart if necessary. An *chart.Error without Retry is
// certain: no cluster can run it. Doubts are warnings: only some clusters may refuse it, or it conflicts with Shipper. Other
// errors say nothing about the chart.
func (c *Catalog) Judge(ctx context.Context, rel *shipper.Release, in values.Place) (doubts []string, err error) {
	loaded, err := c.Load(ctx, rel.Namespace, rel.Spec.Environment.Chart, rel.Annotations[shipper.ReleaseChartDigestAnnotation])
	if err != nil {
		return nil, &chart.Error{Reason: shipper.ChartFetchFailure, Message: err.Error(), Retry: true, Cause: err}
	}
	return loaded.Judge(ctx, rel, in)
}
