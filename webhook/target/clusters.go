// SPDX-License-Identifier: Apache-2.0

package target

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
)

// change is what a write changes of a target.
type change struct {
	// clusters are those for which something else is requested, sorted.
	clusters []string
	// all is true if the write bears on every cluster.
	all bool
}

// changeOf compares two specs of a target; old is nil on creation. An entry that is added as it is found requests nothing.
func changeOf(now, old any) change {
	is, was := fieldsOf(now), fieldsOf(old)
	after, before := entriesOf(is["clusters"]), entriesOf(was["clusters"])
	touched := map[string]bool{}
	for name, entry := range after {
		known, there := before[name]
		touched[name] = there && !equality.Semantic.DeepEqual(entry, known) || !there && fieldsOf(entry)["asFound"] != true
	}
	for name := range before {
		if _, stays := after[name]; !stays {
			touched[name] = true
		}
	}
	maps.DeleteFunc(touched, func(_ string, is bool) bool { return !is })
	return change{clusters: slices.Sorted(maps.Keys(touched)), all: old != nil && !sameBut(is, was)}
}

// sameBut reports whether two specs differ in nothing but their clusters, and whether shared objects may be taken over: that follows from
// which Release is the newest.
func sameBut(is, was map[string]any) bool {
	bear := func(spec map[string]any) map[string]any {
		out := maps.Clone(spec)
		delete(out, "clusters")
		delete(out, "canOverride")
		return out
	}
	return equality.Semantic.DeepEqual(bear(is), bear(was))
}

func fieldsOf(o any) map[string]any {
	out, _ := o.(map[string]any)
	return out
}

// entriesOf are the entries of a list of clusters by name. An InstallationTarget has names alone.
func entriesOf(list any) map[string]any {
	out := map[string]any{}
	items, _ := list.([]any)
	for _, item := range items {
		if name, is := item.(string); is {
			out[name] = true
		} else if name, is := fieldsOf(item)["name"].(string); is {
			out[name] = item
		}
	}
	return out
}
