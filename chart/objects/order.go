// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"cmp"
	"slices"

	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Ranks of kinds outside Helm's order.
const (
	rankNamespace = iota
	rankDefinition
	rankListed // plus the index in Helm's InstallOrder
)

// ranks has the ranks of the kinds that Helm lists. Like Helm, it ignores their groups.
var ranks = func() map[string]int {
	out := map[string]int{}
	for i, kind := range releaseutil.InstallOrder {
		out[kind] = rankListed + i
	}
	return out
}()

// rankOf is the place of a kind in the order of writes: Namespaces, CustomResourceDefinitions, Helm's order, other kinds such as custom
// resources, and last the objects that decide about other writes, because their server may not run yet.
func rankOf(gk schema.GroupKind) int {
	other := rankListed + len(releaseutil.InstallOrder)
	switch {
	case gk == namespace:
		return rankNamespace
	case gk == customResourceDefinition:
		return rankDefinition
	case gk.Group == "admissionregistration.k8s.io":
		return other + 1
	default:
		return cmp.Or(ranks[gk.Kind], other)
	}
}

// SortForApply sorts objects in place, in the order in which they are written: Namespaces first, then CustomResourceDefinitions, then
// Helm's install order. Objects of one kind are sorted by Key.
func SortForApply(objects []unstructured.Unstructured) {
	slices.SortStableFunc(objects, func(a, b unstructured.Unstructured) int { return compareForApply(KeyOf(&a), KeyOf(&b)) })
}

// CompareForRemoval orders objects as they are deleted: the reverse of SortForApply. Objects of one kind are next to each other.
func CompareForRemoval(a, b Key) int { return compareForApply(b, a) }

func compareForApply(a, b Key) int {
	return cmp.Or(cmp.Compare(rankOf(a.GroupKind()), rankOf(b.GroupKind())), a.Compare(b))
}
