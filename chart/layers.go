// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"slices"
	"sort"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/util/json"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Place is where values are wanted: a cluster and the region it is in. Either may be empty, which has nothing of its own.
type Place struct{ Cluster, Region string }

// Layers are values and how they differ from place to place. What applies more narrowly is merged over what applies more
// widely, and patches come last, a region's before a cluster's. The chart's own defaults are beneath all of it, and no part of
// it: Helm puts them there when it renders.
type Layers struct {
	// Base is beneath the others: what ConfigMaps and Secrets held. Nil where there are none, or nobody has read them.
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

// Distinct is p without what makes no difference: places of which it is the same have the same values.
func (l Layers) Distinct(p Place) Place {
	if find(l.PerRegion, p.Region) < 0 {
		p.Region = ""
	}
	if find(l.PerCluster, p.Cluster) < 0 {
		p.Cluster = ""
	}
	return p
}

// For is l with nothing in it that is for other places.
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

// At are the values of a place; Common itself where nothing is said of it. Errors are *Error, and wrap a *PatchError where a
// patch does not apply. They say nothing of what the values are.
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

// find is where the values for a name are, -1 when there are none. Values have a name.
func find(all []shipper.ValuesFor, name string) int {
	return slices.IndexFunc(all, func(v shipper.ValuesFor) bool { return name != "" && v.Name == name })
}

// mergeMaps puts over on top of under, as Helm does with its values files, and leaves both as they are. A null stays: that is
// how Helm knows that a default of the chart is to go.
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
	// PerCluster reports whether it is one of Layers.PerCluster, or of PerRegion; Entry is its index there, and Operation that of
	// the operation that fails, -1 when it is the result.
	PerCluster bool
	Entry      int
	Operation  int
	// Message says why, and nothing of the values.
	Message string

	what string
}

// Error says which patch it is, and why.
func (e *PatchError) Error() string {
	if e.Operation < 0 {
		return fmt.Sprintf("%s %s", e.what, e.Message)
	}
	return fmt.Sprintf("%s: operation %d %s", e.what, e.Operation, e.Message)
}

// patch is a JSON patch and whose it is.
type patch struct {
	operations []shipper.PatchOperation
	whose      PatchError
}

// apply returns the patched values. Whatever makes the library panic is an error of the patch.
func (p patch) apply(values map[string]any) (patched map[string]any, err error) {
	failed := func(operation int, why string) error {
		e := p.whose
		e.Operation, e.Message = operation, why
		said := "the values cannot be merged: " + e.Error()
		return &Error{Reason: shipper.ChartError, Message: said, Cause: &e, open: said}
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
	how.EscapeHTML, how.AccumulatedCopySizeLimit = false, maxValues
	result, err := operations.ApplyWithOptions(document, how)
	if err != nil {
		// Operations apply in order, so the shortest beginning that fails ends with the one to name.
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
