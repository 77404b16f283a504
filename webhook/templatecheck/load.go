// SPDX-License-Identifier: Apache-2.0

package templatecheck

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
)

const (
	// MaxPatchedBytes bounds what patches are applied to, counted for each region and cluster: all of them are tried before an
	// Application is admitted, while whoever wrote it waits, and others after him.
	MaxPatchedBytes = 4 << 20
	// perDocument is how many operations take as long as reading what they are applied to, in the worst case.
	perDocument = 64
	// maxListedPatches is of how many patches it is told that they do not apply. To find the operation each is tried several times.
	maxListedPatches = 3
)

// layer are the values of one region or cluster, and how much they are.
type layer struct {
	bytes int
	patch []shipper.PatchOperation
}

// layersByName are values by the name of what they are for.
func layersByName(all []shipper.ValuesFor) map[string]layer {
	out := make(map[string]layer, len(all))
	for _, one := range all {
		_, bytes := sizesOf(one.Values)
		out[one.Name] = layer{bytes, one.Patch}
	}
	return out
}

// validateLoad says when trying the patches of all places would take too long.
func validateLoad(env *shipper.ReleaseEnvironment, path *field.Path, places []chart.Place) field.ErrorList {
	sizes, all := sizesOf(env.Values)
	regions, clusters := layersByName(env.ValuesPerRegion), layersByName(env.ValuesPerCluster)
	load := 0
	for _, place := range places {
		region, cluster := regions[place.Region], clusters[place.Cluster]
		bytes := len(sizes) + region.bytes + cluster.bytes
		for _, patch := range [][]shipper.PatchOperation{region.patch, cluster.patch} {
			keys, whole := chart.Touched(patch)
			if whole {
				bytes += all
			}
			for key := range keys {
				bytes += sizes[key]
			}
		}
		load += bytes + bytes*(len(region.patch)+len(cluster.patch))/perDocument
	}
	if load <= MaxPatchedBytes {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("valuesPerCluster"), fmt.Sprintf("(patches of %d bytes)", load), fmt.Sprintf(
		"what patches change may have %d bytes, counted below the first key of their paths, for each region and cluster that has "+
			"one, and more for many operations: write values in place of patches, or patch smaller parts", MaxPatchedBytes))}
}

// sizesOf is how many bytes values have as JSON, by their keys and in all.
func sizesOf(values *shipper.ChartValues) (sizes map[string]int, all int) {
	sizes = map[string]int{}
	if values == nil {
		return sizes, 0
	}
	for key, value := range *values {
		text, err := json.Marshal(value)
		if err != nil {
			continue // it is refused elsewhere
		}
		sizes[key] = len(text)
		all += len(key) + len(text)
	}
	return sizes, all
}
