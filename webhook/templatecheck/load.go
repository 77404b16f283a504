// SPDX-License-Identifier: Apache-2.0

package templatecheck

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/values"
)

const (
	// MaxPatchedBytes bounds the values that patches are applied to, summed over regions and clusters: the webhook applies all
	// patches at admission, while the user and other requests wait.
	MaxPatchedBytes = 4 << 20
	// perDocument is the number of operations that take as long as decoding their document, in the worst case.
	perDocument = 64
	// maxListedPatches bounds the errors for patches that do not apply. Finding the failing operation takes several attempts
	// each.
	maxListedPatches = 3
)

// layer are the values of one region or cluster, and their size.
type layer struct {
	bytes int
	patch []shipper.PatchOperation
}

// layersByName are values by the name of their region or cluster.
func layersByName(all []shipper.ValuesFor) map[string]layer {
	out := make(map[string]layer, len(all))
	for _, one := range all {
		_, bytes := sizesOf(one.Values)
		out[one.Name] = layer{bytes, one.Patch}
	}
	return out
}

// validateLoad returns an error when applying all patches would take too long.
func validateLoad(env *shipper.ReleaseEnvironment, path *field.Path, places []values.Place) field.ErrorList {
	sizes, all := sizesOf(env.Values)
	regions, clusters := layersByName(env.ValuesPerRegion), layersByName(env.ValuesPerCluster)
	load := 0
	for _, place := range places {
		region, cluster := regions[place.Region], clusters[place.Cluster]
		bytes := len(sizes) + region.bytes + cluster.bytes
		for _, patch := range [][]shipper.PatchOperation{region.patch, cluster.patch} {
			keys, whole := values.TouchedKeys(patch)
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

// sizesOf is the size of values as JSON, in bytes, by key and in total.
func sizesOf(values *shipper.ChartValues) (sizes map[string]int, all int) {
	sizes = map[string]int{}
	if values == nil {
		return sizes, 0
	}
	for key, value := range *values {
		text, err := json.Marshal(value)
		if err != nil {
			continue // another check refuses it
		}
		sizes[key] = len(text)
		all += len(key) + len(text)
	}
	return sizes, all
}
