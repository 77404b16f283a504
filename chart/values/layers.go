// SPDX-License-Identifier: Apache-2.0

package values

import (
	"fmt"
	"slices"
	"sort"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/util/json"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
)

// Place is a cluster and its region. Either may be empty, and then has no values of its own.
type Place struct{ Cluster, Region string }

// Layers are values and their differences per place. Values of a cluster are merged over those of its region, and these over
// the common ones; patches come last, a region's before a cluster's. The chart's defaults are not included: Helm adds them when
// it renders.
type Layers struct {
	// Base is merged first: the values from ConfigMaps and Secrets. Nil if there are none, or if they were not read.
	Base       map[string]any `json:"-"`
	Common     *shipper.ChartValues
	PerRegion  []shipper.ValuesFor
	PerCluster []shipper.ValuesFor
}

// LayersOf are the values of an environment.
func LayersOf(env *shipper.ReleaseEnvironment) Layers {
	return Layers{Common: env.Values, PerRegion: env.ValuesPerRegion, PerCluster: env.ValuesPerCluster}
}

// Differ reports whether places may have different values.
func (l Layers) Differ() bool { return len(l.PerRegion)+len(l.PerCluster) > 0 }

// Distinct is p without the parts that have no values of their own: places with the same result have the same values.
func (l Layers) Distinct(p Place) Place {
	if find(l.PerRegion, p.Region) < 0 {
		p.Region = ""
	}
	if find(l.PerCluster, p.Cluster) < 0 {
		p.Cluster = ""
	}
	return p
}

// For is l without the values for other places.
func (l Layers) For(p Place) Layers {
	only := func(all []shipper.ValuesFor, name string) []shipper.ValuesFor {
		if at := find(all, name); at >= 0 {
			return all[at : at+1]
		}
		return nil
	}
	l.PerRegion, l.PerCluster = only(l.PerRegion, p.Region), only(l.PerCluster, p.Cluster)
	return l
}

// At are the values of a place; Common itself if it has none of its own. Errors are *chart.Error, and wrap a *PatchError if a patch
// does not apply. They do not quote values.
func (l Layers) At(p Place) (*shipper.ChartValues, error) {
	region, cluster := find(l.PerRegion, p.Region), find(l.PerCluster, p.Cluster)
	if region < 0 && cluster < 0 && l.Base == nil {
		return l.Common, nil
	}
	merged := map[string]any{}
	if l.Common != nil {
		merged = *l.Common
	}
	if l.Base != nil {
		merged = mergeMaps(l.Base, merged)
	}
	var patches []patch
	for _, layer := range []struct {
		of          []shipper.ValuesFor
		at          int
		perCluster  bool
		description string
	}{{l.PerRegion, region, false, "region"}, {l.PerCluster, cluster, true, "cluster"}} {
		if layer.at < 0 {
			continue
		}
		one := layer.of[layer.at]
		if one.Values != nil {
			merged = mergeMaps(merged, *one.Values)
		}
		if len(one.Patch) > 0 {
			what := fmt.Sprintf("the patch of %s %q", layer.description, one.Name)
			patches = append(patches, patch{one.Patch, PatchError{PerCluster: layer.perCluster, Entry: layer.at, what: what}})
		}
	}
	for _, p := range patches {
		var err error
		if merged, err = p.applyNarrowly(merged); err != nil {
			return nil, err
		}
	}
	out := shipper.ChartValues(merged)
	return &out, nil
}

// find is the index of the values for a name, -1 when there are none. Values always have a name.
func find(all []shipper.ValuesFor, name string) int {
	return slices.IndexFunc(all, func(v shipper.ValuesFor) bool { return name != "" && v.Name == name })
}

// mergeMaps merges over on top of under, as Helm merges values files, without changing either. It keeps nulls: they make Helm
// remove a default of the chart.
func mergeMaps(under, over map[string]any) map[string]any {
	out := make(map[string]any, len(under)+len(over))
	for key, value := range under {
		out[key] = value
	}
	for key, value := range over {
		above, isMap := value.(map[string]any)
		below, wasMap := out[key].(map[string]any)
		if isMap && wasMap {
			value = mergeMaps(below, above)
		}
		out[key] = value
	}
	return out
}

// PatchError is a patch that cannot be applied.
type PatchError struct {
	// PerCluster reports whether it is in Layers.PerCluster or in PerRegion; Entry is its index there. Operation is the index
	// of the operation that fails, -1 when the result is invalid.
	PerCluster bool
	Entry      int
	Operation  int
	// Message is the reason, without values.
	Message string

	what string
}

// Error names the patch and the reason.
func (e *PatchError) Error() string {
	if e.Operation < 0 {
		return fmt.Sprintf("%s %s", e.what, e.Message)
	}
	return fmt.Sprintf("%s: operation %d %s", e.what, e.Operation, e.Message)
}

// patch is a JSON patch and its owner.
type patch struct {
	operations []shipper.PatchOperation
	whose      PatchError
}

// apply returns the patched values. A panic of the library becomes an error of the patch.
func (p patch) apply(values map[string]any) (patched map[string]any, err error) {
	failed := func(operation int, why string) error {
		e := p.whose
		e.Operation, e.Message = operation, why
		said := "the values cannot be merged: " + e.Error()
		return &chart.Error{Reason: shipper.ChartError, Message: said, Cause: &e, Public: said}
	}
	defer func() {
		if caught := recover(); caught != nil {
			patched, err = nil, failed(-1, "cannot be applied")
		}
	}()
	operations, bad, why := decodePatch(p.operations)
	if why != "" {
		return nil, failed(bad, why)
	}
	document, err := json.Marshal(values)
	if err != nil {
		return nil, failed(-1, "cannot be applied: the values are not JSON")
	}
	how := jsonpatch.NewApplyOptions()
	how.EscapeHTML, how.AccumulatedCopySizeLimit = false, MaxBytes
	result, err := operations.ApplyWithOptions(document, how)
	if err != nil {
		// Operations apply in order, so the last operation of the shortest failing prefix is the one to name.
		bad := sort.Search(len(operations)-1, func(n int) bool {
			_, err := operations[:n+1].ApplyWithOptions(document, how)
			return err != nil
		})
		return nil, failed(bad, whyNot(operations[bad], err))
	}
	if err := json.Unmarshal(result, &patched); err != nil || patched == nil {
		return nil, failed(-1, "makes the values something else than a map")
	}
	return patched, nil
}
