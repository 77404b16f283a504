// SPDX-License-Identifier: Apache-2.0

package block

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ParseOverrides reads an override annotation: RolloutBlocks as `namespace/name`, separated by commas. Blanks around
// entries, empty entries and repetitions do not matter. The names come back sorted; the error names the first bad
// entry.
func ParseOverrides(annotation string) ([]types.NamespacedName, error) {
	var names []types.NamespacedName
	for _, entry := range strings.Split(annotation, ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		name, err := parseEntry(entry)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	slices.SortFunc(names, compareNames)
	return slices.Compact(names), nil
}

// FormatOverrides writes names as an override annotation: sorted, without repetitions, separated by commas.
// ParseOverrides reads the same names back.
func FormatOverrides(names []types.NamespacedName) string {
	sorted := slices.Compact(slices.SortedFunc(slices.Values(names), compareNames))
	entries := make([]string, len(sorted))
	for i, n := range sorted {
		entries[i] = n.String()
	}
	return strings.Join(entries, ",")
}

func parseEntry(entry string) (types.NamespacedName, error) {
	namespace, name, found := strings.Cut(entry, "/")
	switch {
	case !found:
		return types.NamespacedName{}, fmt.Errorf("%q is not namespace/name of a RolloutBlock", entry)
	case len(validation.IsDNS1123Label(namespace)) > 0:
		return types.NamespacedName{}, fmt.Errorf("%q: %q cannot be the name of a namespace", entry, namespace)
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return types.NamespacedName{}, fmt.Errorf("%q: %q cannot be the name of a RolloutBlock", entry, name)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}
