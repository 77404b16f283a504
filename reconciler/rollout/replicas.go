// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/values"
)

// regions are those of a Release's clusters, by name; nil when no region has values of its own. The region that was written down for a
// cluster stays: moving it to another region is no rollout.
func (r *pass) regions(ctx context.Context, have strategy.Release, clusters []string) (map[string]string, error) {
	if len(have.Release.Spec.Environment.ValuesPerRegion) == 0 {
		return nil, nil
	}
	out := map[string]string{}
	for _, name := range clusters {
		if it := have.Installation; it != nil {
			if region, known := it.Spec.Regions[name]; known {
				out[name] = region
				continue
			}
		}
		cluster := &shipper.Cluster{}
		switch err := r.client.Get(ctx, client.ObjectKey{Name: name}, cluster); {
		case apierrors.IsNotFound(err): // nothing can be installed there; it may come back
		case err != nil:
			return nil, fmt.Errorf("reading the region of cluster %s: %w", name, err)
		default:
			out[name] = cluster.Spec.Region
		}
	}
	return out, nil
}

// count is how many Pods all of a Release is in each of its clusters. The chart is rendered once for clusters that have the
// same values.
func (r *pass) count(
	ctx context.Context, rel *shipper.Release, clusters []string, regions map[string]string,
) (map[string]int32, error) {
	layers, counted := values.LayersOf(&rel.Spec.Environment), map[values.Place]int32{}
	out := make(map[string]int32, len(clusters))
	for _, name := range clusters {
		place := layers.Distinct(values.Place{Cluster: name, Region: regions[name]})
		replicas, known := counted[place]
		if !known {
			var err error
			if replicas, err = r.charts.Replicas(ctx, rel, place); err != nil {
				return nil, fmt.Errorf("counting the replicas of release %s/%s: %w", rel.Namespace, rel.Name, err)
			}
			counted[place] = replicas
		}
		out[name] = replicas
	}
	return out, nil
}

// countAdded counts the Pods in clusters that a CapacityTarget is about to get, where they may not be as many as in the others.
func (r *pass) countAdded(ctx context.Context, have strategy.Release, want *shipper.CapacityTargetSpec) error {
	if !values.LayersOf(&have.Release.Spec.Environment).Differ() {
		return nil
	}
	var added []string
	for _, c := range want.Clusters {
		if !slices.ContainsFunc(have.Capacity.Spec.Clusters, func(o shipper.ClusterCapacityTarget) bool { return o.Name == c.Name }) {
			added = append(added, c.Name)
		}
	}
	regions, err := r.regions(ctx, have, added)
	if err != nil || len(added) == 0 {
		return err
	}
	counts, err := r.count(ctx, have.Release, added, regions)
	if err != nil {
		return err
	}
	for i, c := range want.Clusters {
		if n, there := counts[c.Name]; there {
			want.Clusters[i].TotalReplicaCount = n
		}
	}
	return nil
}
