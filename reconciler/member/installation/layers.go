// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/override"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/values"
)

// sources are what a target's manifests are rendered from, in all its clusters.
type sources struct {
	Chart  shipper.Chart
	Digest string
	// values may differ from cluster to cluster, and regions are those that clusters were in when they were chosen.
	values  values.Layers
	regions map[string]string
	// pinned are ConfigMaps and Secrets that some of the values are from.
	pinned values.Pinned
	// found is set when the chart has looked up an object of the cluster.
	found bool
	// open is set when who sees errors may see values.
	open bool
	// overrides are those in the cluster of the pass.
	overrides []override.Change
}

// sourcesOf reads what a target says itself.
func sourcesOf(it *shipper.InstallationTarget) sources {
	out := sources{
		Digest: it.Annotations[shipper.ReleaseChartDigestAnnotation], regions: it.Spec.Regions,
		values: values.Layers{Common: it.Spec.Values, PerRegion: it.Spec.ValuesPerRegion, PerCluster: it.Spec.ValuesPerCluster},
	}
	if it.Spec.Chart != nil {
		out.Chart = *it.Spec.Chart
	}
	out.pinned = values.Pinned{
		Namespace: it.Namespace, App: it.Labels[shipper.AppLabel], Release: it.Name,
		From: it.Spec.ValuesFrom, Digests: it.Spec.ValuesDigests,
	}
	return out
}

// readRegion reads the region of a cluster of which the target does not name one, where values differ by region: it was unknown when the
// cluster was chosen. One that still is gets no values of a region; nothing can be installed there either.
func (w *Worker) readRegion(ctx context.Context, it *shipper.InstallationTarget, cluster string, s *sources) error {
	if len(s.values.PerRegion) == 0 {
		return nil
	}
	s.regions = maps.Clone(it.Spec.Regions)
	if _, known := s.regions[cluster]; known {
		return nil
	}
	of := &shipper.Cluster{}
	switch err := w.client.Get(ctx, client.ObjectKey{Name: cluster}, of); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading the region of cluster %s: %w", cluster, err)
	}
	if s.regions == nil {
		s.regions = map[string]string{}
	}
	s.regions[cluster] = of.Spec.Region
	return nil
}

// in is what is rendered from in one cluster. Nothing of what is for others is in it, so that they can be changed without
// writing here.
func (s sources) in(cluster string) (Source, error) {
	place := values.Place{Cluster: cluster, Region: s.regions[cluster]}
	if len(s.pinned.From) > 0 {
		later := &Later{Pinned: s.pinned, Layers: s.values.For(place), Place: place}
		return Source{Chart: s.Chart, Digest: s.Digest, Later: later, Overrides: s.overrides}, nil
	}
	values, err := s.values.At(place)
	if err != nil {
		return Source{}, ofChart(err)
	}
	return Source{Chart: s.Chart, Digest: s.Digest, Values: values, Overrides: s.overrides}, nil
}

// overridesIn are the overrides of a target in a cluster, by the labels that its Cluster has now.
func (w *Worker) overridesIn(ctx context.Context, it *shipper.InstallationTarget, cluster string) ([]override.Change, error) {
	if len(it.Spec.Overrides) == 0 {
		return nil, nil
	}
	of := &shipper.Cluster{}
	switch err := w.client.Get(ctx, client.ObjectKey{Name: cluster}, of); {
	case apierrors.IsNotFound(err): // nothing can be written there either
		of = nil
	case err != nil:
		return nil, fmt.Errorf("reading the labels of cluster %s: %w", cluster, err)
	}
	return override.Resolve(it.Spec.Overrides, it.Namespace, it.Name, of), nil
}
