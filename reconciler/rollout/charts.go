// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"time"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/chart/values"
)

// countTimeout bounds how long one Application keeps a worker busy with its chart. A download goes on after it, so
// that a later pass finds it done.
const countTimeout = 5 * time.Second

// Charts verify the signature of a Release's chart, and count the Pods of a Release at full capacity.
type Charts interface {
	// Replicas fetches and renders the Release's chart. Errors are *chart.Error, or the context's.
	Replicas(ctx context.Context, rel *shipper.Release, in values.Place) (int32, error)
	// Verify returns an error unless a key that the Release requires signed the archive that it is pinned to. Errors are as those of Replicas.
	Verify(ctx context.Context, rel *shipper.Release) (shipper.ChartSignature, error)
}

// Source is where charts come from.
type Source interface {
	repository.Loader
	repository.Verifier
}

// Values know what valuesFrom of a Release held, and see that it is kept. Errors are *chart.Error, or the API server's.
type Values interface {
	Of(ctx context.Context, pinned values.Pinned) (map[string]any, error)
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
func (c counter) Replicas(ctx context.Context, rel *shipper.Release, in values.Place) (int32, error) {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	digest := rel.Annotations[shipper.ReleaseChartDigestAnnotation]
	loaded, err := c.charts.Load(ctx, rel.Namespace, rel.Spec.Environment.Chart, digest)
	if err != nil {
		return 0, err
	}
	layers, pinned := values.LayersOf(&rel.Spec.Environment), values.PinnedOf(rel)
	if len(pinned.From) == 0 {
		return loaded.Replicas(ctx, rel, layers, in)
	}
	if layers.Base, err = c.values.Of(ctx, pinned); err != nil {
		return 0, err
	}
	replicas, err := loaded.Replicas(ctx, rel, layers, in)
	if pinned.Secret() {
		err = chart.Withheld(err)
	}
	return replicas, err
}
