// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"time"

	"shipper.dev/shipper/apis/rules/preview"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/chart/values"
)

// countTimeout bounds how long one Application keeps a worker busy with its chart. A download goes on after it, so
// that a later pass finds it done.
const countTimeout = 5 * time.Second

// Charts verify the signature of a Release's chart, decide how its objects are named, and count the Pods of a Release at full capacity.
type Charts interface {
	// Replicas fetches and renders the Release's chart. Errors are *chart.Error, or the context's.
	Replicas(ctx context.Context, rel *shipper.Release, in render.Cluster) (int32, error)
	// Workloads are those of a Release whose objects are named by Application. Errors are as those of Replicas.
	Workloads(ctx context.Context, rel *shipper.Release, in render.Cluster) ([]preview.Workload, error)
	// Naming decides how the objects of the first Release of an Application are named, in these clusters. Errors are as those of Replicas.
	Naming(ctx context.Context, rel *shipper.Release, clusters []render.Cluster) (shipper.ChartNaming, error)
	// Verify returns an error unless a key that the Release requires signed the archive that it is pinned to. Errors are as those of Replicas.
	Verify(ctx context.Context, rel *shipper.Release) (shipper.ChartSignature, error)
}

// Source is where charts come from.
type Source interface {
	repository.Loader
	repository.Verifier
}

// Values know what valuesFrom of a Release held. Errors are *chart.Error, or the API server's.
type Values interface {
	// Of sees that it is kept.
	Of(ctx context.Context, pinned values.Pinned) (map[string]any, error)
	// Ahead is for a Release that is not there yet.
	Ahead(ctx context.Context, pinned values.Pinned) (map[string]any, error)
}

// counter counts replicas in charts, and asks who signed them.
type counter struct {
	charts Source
	values Values
}

// NewCharts returns Charts that come from a source, with values.
func NewCharts(charts Source, values Values) Charts { return counter{charts, values} }

// Verify is Charts.
func (c counter) Verify(ctx context.Context, rel *shipper.Release) (shipper.ChartSignature, error) {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	return c.charts.Verify(ctx, rel.Namespace, rel.Spec.Environment.Chart, rel.Annotations[shipper.ReleaseChartDigestAnnotation])
}

// Replicas is Charts.
func (c counter) Replicas(ctx context.Context, rel *shipper.Release, in render.Cluster) (replicas int32, err error) {
	err = c.with(ctx, rel, false, func(ctx context.Context, of *render.Chart, layers values.Layers) error {
		replicas, err = of.Replicas(ctx, rel, layers, in)
		return err
	})
	return replicas, err
}

// Workloads is Charts.
func (c counter) Workloads(ctx context.Context, rel *shipper.Release, in render.Cluster) (out []preview.Workload, err error) {
	err = c.with(ctx, rel, false, func(ctx context.Context, of *render.Chart, layers values.Layers) error {
		table, err := of.LotsOf(ctx, rel, layers, in)
		out = render.Workloads(&table)
		return err
	})
	return out, err
}

// Naming is Charts.
func (c counter) Naming(ctx context.Context, rel *shipper.Release, clusters []render.Cluster) (naming shipper.ChartNaming, err error) {
	err = c.with(ctx, rel, true, func(ctx context.Context, of *render.Chart, layers values.Layers) error {
		naming, err = of.NamingIn(ctx, rel, layers, clusters)
		return err
	})
	return naming, err
}

// with calls use with the chart and the values of a Release, which is not there yet if ahead is set. Errors do not quote values that are
// secret.
func (c counter) with(
	ctx context.Context, rel *shipper.Release, ahead bool, use func(context.Context, *render.Chart, values.Layers) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	digest := rel.Annotations[shipper.ReleaseChartDigestAnnotation]
	loaded, err := c.charts.Load(ctx, rel.Namespace, rel.Spec.Environment.Chart, digest)
	if err != nil {
		return err
	}
	layers, pinned := values.LayersOf(&rel.Spec.Environment), values.PinnedOf(rel)
	switch {
	case len(pinned.From) == 0:
	case ahead:
		layers.Base, err = c.values.Ahead(ctx, pinned)
	default:
		layers.Base, err = c.values.Of(ctx, pinned)
	}
	if err != nil {
		return err
	}
	err = use(ctx, loaded, layers)
	if pinned.Secret() {
		err = chart.Withheld(err)
	}
	return err
}
