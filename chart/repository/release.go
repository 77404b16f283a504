// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/lots"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/values"
)

// Replicas is the number of Pods of a Release in a cluster at full capacity. It fetches the Release's chart if necessary. Errors
// are *chart.Error, or the context's.
func (c *Catalog) Replicas(ctx context.Context, rel *shipper.Release, in render.Cluster) (int32, error) {
	loaded, err := c.Load(ctx, rel.Namespace, rel.Spec.Environment.Chart, rel.Annotations[shipper.ReleaseChartDigestAnnotation])
	if err != nil {
		return 0, err
	}
	return loaded.Replicas(ctx, rel, values.LayersOf(&rel.Spec.Environment), in)
}

// Judge renders a Release as for its installation in a cluster, and fetches its chart if necessary. An *chart.Error without Retry is
// certain: it cannot be rolled out there. Doubts are what users are warned of. Other errors say nothing about the chart.
func (c *Catalog) Judge(ctx context.Context, rel *shipper.Release, in render.Cluster) (doubts []string, err error) {
	loaded, err := c.loadOf(ctx, rel)
	if err != nil {
		return nil, err
	}
	return loaded.Judge(ctx, rel, in)
}

// Naming decides how the objects of the first Release of an Application are named in these clusters, and fetches its chart if necessary.
// Errors are those of Judge.
func (c *Catalog) Naming(ctx context.Context, rel *shipper.Release, clusters []render.Cluster) (shipper.ChartNaming, error) {
	loaded, err := c.loadOf(ctx, rel)
	if err != nil {
		return "", err
	}
	return loaded.NamingIn(ctx, rel, values.LayersOf(&rel.Spec.Environment), clusters)
}

// Lots are what becomes of the objects of a Release that is named by Application, in a cluster. It fetches the chart if necessary.
func (c *Catalog) Lots(ctx context.Context, rel *shipper.Release, in render.Cluster) (lots.Table, error) {
	loaded, err := c.loadOf(ctx, rel)
	if err != nil {
		return lots.Table{}, err
	}
	return loaded.LotsOf(ctx, rel, values.LayersOf(&rel.Spec.Environment), in)
}

// loadOf is the chart of a Release. Errors are to be retried: the chart is unknown.
func (c *Catalog) loadOf(ctx context.Context, rel *shipper.Release) (*render.Chart, error) {
	loaded, err := c.Load(ctx, rel.Namespace, rel.Spec.Environment.Chart, rel.Annotations[shipper.ReleaseChartDigestAnnotation])
	if err != nil {
		return nil, &chart.Error{Reason: shipper.ChartFetchFailure, Message: err.Error(), Retry: true, Cause: err}
	}
	return loaded, nil
}
