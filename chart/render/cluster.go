// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/values"
)

// Cluster is what decides, beside a Release, what a chart renders to in a cluster.
type Cluster struct {
	// Place decides the values.
	Place values.Place
	// KubeVersion and APIVersions are those of Target.
	KubeVersion string
	APIVersions []string
	// Object decides which overrides there are; nil for a cluster that is not known.
	Object *shipper.Cluster
}

// ClusterOf is what the management cluster knows of a cluster. Version and APIs are empty before Shipper was connected to it.
func ClusterOf(c *shipper.Cluster) Cluster {
	return Cluster{
		Place: values.Place{Cluster: c.Name, Region: c.Spec.Region}, KubeVersion: c.Status.KubernetesVersion, APIVersions: c.Status.APIVersions,
		Object: c,
	}
}

// ClustersOf are those of all with these names, sorted.
func ClustersOf(all []shipper.Cluster, names []string) (out []Cluster) {
	for i := range all {
		if slices.Contains(names, all[i].Name) {
			out = append(out, ClusterOf(&all[i]))
		}
	}
	slices.SortFunc(out, func(a, b Cluster) int { return cmp.Compare(a.Place.Cluster, b.Place.Cluster) })
	return out
}

// Alike are clusters in which a Release renders to the same.
type Alike struct {
	Cluster
	// Names are those of the clusters, in the order given.
	Names []string
}

// Group groups clusters by values, version and APIs. Without clusters it returns one group without names, of an unknown cluster.
func Group(layers values.Layers, clusters []Cluster) []Alike {
	if len(clusters) == 0 {
		return []Alike{{}}
	}
	var out []Alike
	at := map[string]int{}
	for _, c := range clusters {
		name := c.Place.Cluster
		c.Place = layers.Distinct(c.Place)
		key := fmt.Sprintf("%q", []any{c.Place, c.KubeVersion, c.APIVersions})
		i, known := at[key]
		if !known {
			i = len(out)
			at[key], out = i, append(out, Alike{Cluster: c})
		}
		out[i].Names = append(out[i].Names, name)
	}
	return out
}

// targetOf is the Target of a Release in a cluster.
func targetOf(rel *shipper.Release, in Cluster) Target {
	t := TargetOf(&rel.ObjectMeta, rel.Spec.Environment.Chart.Naming, in.KubeVersion, in.APIVersions)
	t.Overrides = overridesIn(rel, &in)
	return t
}

// NamingIn decides how the objects of the first Release of an Application are named: by Release if the chart fits the rules of the original
// in all these clusters. Errors are those of Naming.
func (c *Chart) NamingIn(
	ctx context.Context, rel *shipper.Release, layers values.Layers, clusters []Cluster,
) (shipper.ChartNaming, error) {
	groups, err := GroupOf(ctx, rel, clusters)
	if err != nil {
		return "", err
	}
	for _, in := range groups {
		from, err := layers.At(in.Place)
		if err != nil {
			return "", err
		}
		naming, err := c.Naming(ctx, from, targetOf(rel, in.Cluster))
		if err != nil || naming == shipper.NamingByApplication {
			return naming, err
		}
	}
	return shipper.NamingByRelease, nil
}
