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
	"shipper.dev/shipper/chart/render"
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

// clusters are those that a Release is rendered for, with the regions that are written down for it. One that is gone has no version.
func (r *pass) clusters(ctx context.Context, names []string, regions map[string]string) ([]render.Cluster, error) {
	out := make([]render.Cluster, len(names))
	for i, name := range names {
		cluster := &shipper.Cluster{}
		if err := client.IgnoreNotFound(r.client.Get(ctx, client.ObjectKey{Name: name}, cluster)); err != nil {
			return nil, fmt.Errorf("reading the version of cluster %s: %w", name, err)
		}
		out[i] = render.ClusterOf(cluster)
		out[i].Place = values.Place{Cluster: name, Region: regions[name]}
	}
	return out, nil
}

// count is how many Pods all of a Release is in each of its clusters. The chart is rendered once for clusters that are alike.
func (r *pass) count(ctx context.Context, rel *shipper.Release, clusters []render.Cluster) (map[string]int32, error) {
	out := make(map[string]int32, len(clusters))
	if len(clusters) == 0 {
		return out, nil
	}
	groups, err := render.GroupOf(ctx, rel, clusters)
	if err != nil {
		return nil, fmt.Errorf("counting the replicas of release %s/%s: %w", rel.Namespace, rel.Name, err)
	}
	for _, in := range groups {
		replicas, err := r.charts.Replicas(ctx, rel, in.Cluster)
		if err != nil {
			return nil, fmt.Errorf("counting the replicas of release %s/%s: %w", rel.Namespace, rel.Name, err)
		}
		for _, name := range in.Names {
			out[name] = replicas
		}
	}
	return out, nil
}

// countAdded counts the Pods in clusters that a CapacityTarget is about to get, unless these are like all that it has.
func (r *pass) countAdded(ctx context.Context, have strategy.Release, want *shipper.CapacityTargetSpec) error {
	var names, added []string
	for _, c := range want.Clusters {
		names = append(names, c.Name)
		if !slices.ContainsFunc(have.Capacity.Spec.Clusters, func(o shipper.ClusterCapacityTarget) bool { return o.Name == c.Name }) {
			added = append(added, c.Name)
		}
	}
	if len(added) == 0 {
		return nil
	}
	regions, err := r.regions(ctx, have, names)
	if err != nil {
		return err
	}
	clusters, err := r.clusters(ctx, names, regions)
	if err != nil {
		return err
	}
	groups, err := render.GroupOf(ctx, have.Release, clusters)
	if err != nil {
		return fmt.Errorf("counting the replicas of release %s/%s: %w", have.Release.Namespace, have.Release.Name, err)
	}
	if len(have.Capacity.Spec.Clusters) > 0 && len(groups) == 1 {
		return nil
	}
	clusters = slices.DeleteFunc(clusters, func(c render.Cluster) bool { return !slices.Contains(added, c.Place.Cluster) })
	counts, err := r.count(ctx, have.Release, clusters)
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
