// SPDX-License-Identifier: Apache-2.0

package templatecheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/values"
)

// MaxPatchOperations bounds the JSON patch of one region or cluster.
const MaxPatchOperations = 1000

// validatePlaces returns the errors of values per region and per cluster, independent of the existing clusters.
func validatePlaces(env *shipper.ReleaseEnvironment, path *field.Path) field.ErrorList {
	errs := validateFor(env.ValuesPerRegion, path.Child("valuesPerRegion"), "region")
	errs = append(errs, validateFor(env.ValuesPerCluster, path.Child("valuesPerCluster"), "cluster")...)
	if len(errs) > 0 || !values.LayersOf(env).Differ() {
		return errs
	}
	text, err := json.Marshal([]any{env.Values, env.ValuesPerRegion, env.ValuesPerCluster})
	if err != nil {
		return field.ErrorList{field.Invalid(path.Child("valuesPerCluster"), "(values)", "cannot be written as JSON: "+err.Error())}
	}
	archive := len(env.Chart.Archive)
	bound := min(MaxValuesBytes, MaxTogetherBytes-archive)
	if len(text) > bound && len(validateValues(env.Values, path, archive)) == 0 {
		return field.ErrorList{field.Invalid(path.Child("valuesPerCluster"), fmt.Sprintf("(%d bytes)", len(text)), fmt.Sprintf(
			"values, valuesPerRegion and valuesPerCluster may have %d bytes as JSON, all in all: each Release keeps a copy; "+
				"put large files into the chart", bound))}
	}
	return nil
}

func validateFor(all []shipper.ValuesFor, path *field.Path, what string) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, one := range all {
		switch {
		case strings.TrimSpace(one.Name) == "":
			errs = append(errs, field.Required(path.Index(i).Child("name"), "name the "+what+" as Cluster objects do"))
		case seen[one.Name]:
			errs = append(errs, field.Duplicate(path.Index(i).Child("name"), one.Name))
		}
		seen[one.Name] = true
		patch := path.Index(i).Child("patch")
		if len(one.Patch) > MaxPatchOperations {
			errs = append(errs, field.TooMany(patch, len(one.Patch), MaxPatchOperations))
			continue
		}
		if operation, why := values.CheckPatch(one.Patch); why != "" {
			errs = append(errs, field.Invalid(patch.Index(operation), operationOf(one.Patch[operation]), why))
		}
	}
	return errs
}

// operationOf describes an operation without its value.
func operationOf(operation shipper.PatchOperation) string {
	op, _ := operation["op"].(string)
	path, _ := operation["path"].(string)
	return strings.TrimSpace(op + " " + path)
}

// patched are the regions that have a patch, and the clusters that have one or are in such a region.
func patched(env *shipper.ReleaseEnvironment, clusters []shipper.Cluster) []values.Place {
	var out []values.Place
	regions, regionOf := map[string]bool{}, make(map[string]string, len(clusters))
	for _, cluster := range clusters {
		regionOf[cluster.Name] = cluster.Spec.Region
	}
	for _, region := range env.ValuesPerRegion {
		if len(region.Patch) > 0 {
			regions[region.Name] = true
			out = append(out, values.Place{Region: region.Name})
		}
	}
	for _, one := range env.ValuesPerCluster {
		if region := regionOf[one.Name]; len(one.Patch) > 0 || regions[region] {
			out = append(out, values.Place{Cluster: one.Name, Region: region})
		}
	}
	return out
}

// ValidatePatches returns errors for patches of env, which is at path and otherwise valid, that do not apply to their values.
// clusters are all existing ones; an unknown cluster counts as being in no region with values of its own.
func ValidatePatches(env *shipper.ReleaseEnvironment, path *field.Path, clusters []shipper.Cluster) field.ErrorList {
	layers := values.LayersOf(env)
	if !layers.Differ() {
		return nil
	}
	places := patched(env, clusters)
	if errs := validateLoad(env, path, places); len(errs) > 0 {
		return errs
	}
	var errs field.ErrorList
	reported := map[string]bool{}
	for _, place := range places {
		if len(reported) == maxListedPatches {
			break
		}
		_, err := layers.At(place)
		var broken *values.PatchError
		if !errors.As(err, &broken) {
			continue
		}
		all, at := env.ValuesPerRegion, path.Child("valuesPerRegion")
		if broken.PerCluster {
			all, at = env.ValuesPerCluster, path.Child("valuesPerCluster")
		}
		at = at.Index(broken.Entry).Child("patch")
		value := "(the patched values)"
		if broken.Operation >= 0 {
			value, at = operationOf(all[broken.Entry].Patch[broken.Operation]), at.Index(broken.Operation)
		}
		if !reported[at.String()] {
			reported[at.String()] = true
			errs = append(errs, field.Invalid(at, value, broken.Message))
		}
	}
	return errs
}
