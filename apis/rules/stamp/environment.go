// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// SameEnvironment compares two environments by value, without chart.naming, which is the same in all Releases of an Application. Absent and
// empty values are the same, as are absent and empty lists, and an absent default and one that is written out; inside values null, empty
// and absent differ, because charts distinguish them.
func SameEnvironment(a, b *shipper.ReleaseEnvironment) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Chart.Same(b.Chart) &&
		equality.Semantic.DeepEqual(requirements(a), requirements(b)) &&
		sameStrategy(a.Strategy, b.Strategy) &&
		sameMap(mapOf(a.Values), mapOf(b.Values)) &&
		equality.Semantic.DeepEqual(a.Resources, b.Resources) && equality.Semantic.DeepEqual(a.Apply, b.Apply) &&
		a.ResourcesDigest == b.ResourcesDigest &&
		slices.EqualFunc(a.ValuesPerRegion, b.ValuesPerRegion, sameFor) &&
		slices.EqualFunc(a.ValuesPerCluster, b.ValuesPerCluster, sameFor) &&
		SameSources(a, b)
}

// requirements are an environment's, without the number of clusters where it is the default.
func requirements(env *shipper.ReleaseEnvironment) shipper.ClusterRequirements {
	out := env.ClusterRequirements
	out.Regions = slices.Clone(out.Regions)
	for i := range out.Regions {
		if n := out.Regions[i].Replicas; n != nil && *n == 1 {
			out.Regions[i].Replicas = nil
		}
	}
	return out
}

// SameSources reports whether two environments have the same values from the same ConfigMaps and Secrets.
func SameSources(a, b *shipper.ReleaseEnvironment) bool {
	return equality.Semantic.DeepEqual(a.ValuesFrom, b.ValuesFrom) && equality.Semantic.DeepEqual(a.ValuesDigests, b.ValuesDigests)
}

func sameFor(a, b shipper.ValuesFor) bool {
	return a.Name == b.Name && sameMap(mapOf(a.Values), mapOf(b.Values)) &&
		slices.EqualFunc(a.Patch, b.Patch, func(a, b shipper.PatchOperation) bool { return sameMap(a, b) })
}

func mapOf(values *shipper.ChartValues) map[string]any {
	if values == nil {
		return nil
	}
	return *values
}

func sameMap(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		w, ok := b[k]
		if !ok || !sameValue(v, w) {
			return false
		}
	}
	return true
}

func sameValue(a, b any) bool {
	if x, ok := numberOf(a); ok {
		y, ok := numberOf(b)
		return ok && x.equal(y)
	}
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && (x == nil) == (y == nil) && sameMap(x, y)
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) || (x == nil) != (y == nil) {
			return false
		}
		for i := range x {
			if !sameValue(x[i], y[i]) {
				return false
			}
		}
		return true
	default:
		return equality.Semantic.DeepEqual(a, b)
	}
}

// SameSelectors reports whether two templates select the same objects of the management cluster; nil selects none.
func SameSelectors(a, b *shipper.Resources) bool {
	if a == nil || b == nil {
		return a == b
	}
	return equality.Semantic.DeepEqual(a.Select, b.Select)
}
