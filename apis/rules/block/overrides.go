// SPDX-License-Identifier: Apache-2.0

package block

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// ParseOverrides parses an override annotation: RolloutBlocks as `namespace/name`, separated by commas. It ignores blanks
// around entries, empty entries and repetitions. The names are sorted; the error names the first bad entry.
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

// Override is a block that an object overrides.
type Override struct {
	Name types.NamespacedName
	// UID is the UID of the overridden block; empty when none was recorded. A later block of the same name is another block.
	UID types.UID
}

// names reports whether the override has b's name; it may be of an earlier block.
func (o Override) names(b *shipper.RolloutBlock) bool {
	return o.Name.Name == b.Name && o.Name.Namespace == b.Namespace
}

// Honoured reports whether the override is of b itself, and b can be overridden.
func (o Override) Honoured(b *shipper.RolloutBlock) bool {
	return o.names(b) && (o.UID == "" || o.UID == b.UID) && b.Spec.OverridePolicy != shipper.RolloutBlockNobody
}

// Overrides are the overrides in an object's annotations. A malformed annotation, which the webhook refuses, overrides nothing.
func Overrides(annotations map[string]string) []Override {
	names, err := ParseOverrides(annotations[shipper.RolloutBlockOverrideAnnotation])
	if err != nil || len(names) == 0 {
		return nil
	}
	records := Records(annotations)
	out := make([]Override, len(names))
	for i, name := range names {
		out[i].Name = name
		if r, ok := Recorded(records, name); ok {
			out[i].UID = r.UID
		}
	}
	return out
}

// Record is the record of one override: which block, which user, when and why.
type Record struct {
	// Block is `namespace/name`.
	Block string    `json:"block"`
	UID   types.UID `json:"uid,omitempty"`
	User  string    `json:"user"`
	// Time of the override, to the second.
	Time   metav1.Time `json:"time"`
	Reason string      `json:"reason,omitempty"`
}

// Records are the records in an object's annotations; none if they do not parse. Only the webhook may write them.
func Records(annotations map[string]string) []Record {
	var out []Record
	stamp := annotations[shipper.RolloutBlockOverrideStampAnnotation]
	if stamp == "" || json.Unmarshal([]byte(stamp), &out) != nil {
		return nil
	}
	return out
}

// Recorded is the record of a block, if it exists.
func Recorded(records []Record, name types.NamespacedName) (Record, bool) {
	i := slices.IndexFunc(records, func(r Record) bool { return r.Block == name.String() })
	if i < 0 {
		return Record{}, false
	}
	return records[i], true
}

// FormatRecords formats records for the annotation; empty when there are none.
func FormatRecords(records []Record) string {
	if len(records) == 0 {
		return ""
	}
	text, err := json.Marshal(records)
	if err != nil {
		return "" // strings and a time can always be marshalled
	}
	return string(text)
}

// Keep returns annotations with only the overrides of names, and their records. If none is left, it removes the reason too.
func Keep(annotations map[string]string, names []types.NamespacedName) map[string]string {
	out := maps.Clone(annotations)
	if len(names) == 0 {
		delete(out, shipper.RolloutBlockOverrideAnnotation)
		delete(out, shipper.RolloutBlockOverrideStampAnnotation)
		delete(out, shipper.RolloutBlockOverrideReasonAnnotation)
		return out
	}
	out[shipper.RolloutBlockOverrideAnnotation] = FormatOverrides(names)
	records := slices.DeleteFunc(Records(annotations), func(r Record) bool {
		return !slices.ContainsFunc(names, func(n types.NamespacedName) bool { return n.String() == r.Block })
	})
	if stamp := FormatRecords(records); stamp == "" {
		delete(out, shipper.RolloutBlockOverrideStampAnnotation)
	} else {
		out[shipper.RolloutBlockOverrideStampAnnotation] = stamp
	}
	return out
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
