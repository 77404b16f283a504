// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxSummary bounds the kinds that Summarise names.
const maxSummary = 10

// Summarise counts objects by kind, in the order in which they are written: `14 objects: 1 Namespace, 9 ConfigMaps, 4 Deployments`. It
// names at most 10 kinds, and the group of kinds with equal names.
func Summarise(objects []unstructured.Unstructured) string {
	counts, groups := map[schema.GroupKind]int{}, map[string]int{}
	for i := range objects {
		gk := KeyOf(&objects[i]).GroupKind()
		if counts[gk]++; counts[gk] == 1 {
			groups[gk.Kind]++
		}
	}
	if len(counts) == 0 {
		return "0 objects"
	}
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(rankOf(a), rankOf(b)), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group))
	})
	var texts []string
	rest := len(objects)
	for _, gk := range kinds[:min(len(kinds), maxSummary)] {
		text := count(counts[gk], gk.Kind)
		if groups[gk.Kind] > 1 && gk.Group != "" {
			text += "." + gk.Group
		}
		texts = append(texts, text)
		rest -= counts[gk]
	}
	if rest > 0 {
		texts = append(texts, fmt.Sprintf("%d of %s", rest, count(len(kinds)-maxSummary, "other kind")))
	}
	return count(len(objects), "object") + ": " + strings.Join(texts, ", ")
}

// count is a number with a noun, in the plural unless it is 1.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %s", n, plural(noun))
}

// plural follows the rules of English for the names of kinds. Endpoints is plural already.
func plural(noun string) string {
	lower := strings.ToLower(noun)
	hasEnd := func(ends ...string) bool {
		return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(lower, end) })
	}
	switch {
	case hasEnd("endpoints"):
		return noun
	case hasEnd("s", "x", "z", "ch", "sh"):
		return noun + "es"
	case hasEnd("y") && !hasEnd("ay", "ey", "oy", "uy"):
		return noun[:len(noun)-1] + "ies"
	default:
		return noun + "s"
	}
}
