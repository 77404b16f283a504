// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// ChangedValues are the keys whose values differ between two environments, sorted, with paths as `helm --set` writes them; keys
// that do not print are quoted. A map that only one environment has, and a list, count as one value. It never includes values,
// which may be secret: a ConfigMap or Secret appears as valuesFrom[Secret/db/values.yaml].
func ChangedValues(before, after *shipper.ReleaseEnvironment) []string {
	out := changed(nil, "", mapOf(before.Values), mapOf(after.Values))
	out = changedPlaces(out, "valuesPerRegion", before.ValuesPerRegion, after.ValuesPerRegion)
	out = changedPlaces(out, "valuesPerCluster", before.ValuesPerCluster, after.ValuesPerCluster)
	return slices.Sorted(slices.Values(changedSources(out, before, after)))
}

// changedSources adds the ConfigMaps and Secrets whose content differs or that only one environment names, or the change of
// their order.
func changedSources(out []string, before, after *shipper.ReleaseEnvironment) []string {
	digest := func(env *shipper.ReleaseEnvironment, source string) (string, bool) {
		at := slices.IndexFunc(env.ValuesFrom, func(s shipper.ValuesSource) bool { return s.String() == source })
		return env.ValuesDigests[source], at >= 0
	}
	seen, same := map[string]bool{}, len(out)
	for _, one := range slices.Concat(before.ValuesFrom, after.ValuesFrom) {
		source := one.String()
		a, inA := digest(before, source)
		b, inB := digest(after, source)
		if !seen[source] && (inA != inB || a != b) {
			out = append(out, "valuesFrom["+source+"]")
		}
		seen[source] = true
	}
	if len(out) == same && !SameSources(before, after) {
		out = append(out, "valuesFrom")
	}
	return out
}

// changedPlaces adds the differences for regions, or for clusters. A patch counts as one value.
func changedPlaces(out []string, list string, before, after []shipper.ValuesFor) []string {
	of := func(all []shipper.ValuesFor, name string) shipper.ValuesFor {
		if i := slices.IndexFunc(all, func(v shipper.ValuesFor) bool { return v.Name == name }); i >= 0 {
			return all[i]
		}
		return shipper.ValuesFor{Name: name}
	}
	seen := map[string]bool{}
	for _, one := range slices.Concat(before, after) {
		if seen[one.Name] {
			continue
		}
		seen[one.Name] = true
		a, b, path := of(before, one.Name), of(after, one.Name), list+"["+written(one.Name)+"]"
		out = changed(out, path+".", mapOf(a.Values), mapOf(b.Values))
		if a.Values, b.Values = nil, nil; !sameFor(a, b) {
			out = append(out, path+" patch")
		}
	}
	return out
}

func changed(out []string, path string, before, after map[string]any) []string {
	all := maps.Clone(before)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, after)
	for key := range all {
		a, inA := before[key]
		b, inB := after[key]
		if inA && inB && sameValue(a, b) {
			continue
		}
		name := path + written(key)
		x, isMap := a.(map[string]any)
		y, too := b.(map[string]any)
		if isMap && too && len(x) > 0 && len(y) > 0 {
			out = changed(out, name+".", x, y)
		} else {
			out = append(out, name)
		}
	}
	return out
}

func written(key string) string {
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(key)
	}
	return strings.ReplaceAll(key, ".", `\.`)
}
