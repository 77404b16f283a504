// SPDX-License-Identifier: Apache-2.0

package response

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/chart"
)

// maxNulls bounds the fields that a warning names.
const maxNulls = 5

// NullGate is the consequence of a null where an object counts that is there, also without fields.
const NullGate = "it is the same as to leave the field out; write a value, such as {} for a gate"

// WarnOfNulls warns of fields below paths that kubectl applied as null and that now lacks: `gate:` without braces looks like a gate. The
// API server drops nulls before admission, so that only kubectl's annotation shows them. old is nil for a new object.
func WarnOfNulls[T any, P interface {
	*T
	metav1.Object
}](a *Response, now, old P, consequence string, paths ...string) {
	text := now.GetAnnotations()[corev1.LastAppliedConfigAnnotation]
	if !strings.Contains(text, "null") || old != nil && text == old.GetAnnotations()[corev1.LastAppliedConfigAnnotation] {
		return
	}
	var manifest, is any
	raw, err := json.Marshal(now)
	if err != nil || json.Unmarshal(raw, &is) != nil || json.Unmarshal([]byte(text), &manifest) != nil {
		return // a user may write any text there
	}
	var fields []string
	for _, path := range paths {
		applied, there := manifest, is
		for name := range strings.SplitSeq(path, ".") {
			applied, there = fieldOf(applied, name), fieldOf(there, name)
		}
		fields = append(fields, nulls(applied, there, path)...)
	}
	if len(fields) == 0 {
		return
	}
	if more := len(fields) - maxNulls; more > 0 {
		fields = append(fields[:maxNulls], fmt.Sprintf("%d more", more))
	}
	a.Warn("%s: null in the manifest, and missing in the object: %s", strings.Join(fields, ", "), consequence)
}

// fieldOf is a field of an object; nil if there is none.
func fieldOf(of any, name string) any {
	fields, _ := of.(map[string]any)
	return fields[name]
}

// nulls are the paths of fields that are null in a manifest and missing in what was made of it, sorted.
func nulls(manifest, is any, path string) (out []string) {
	switch manifest := manifest.(type) {
	case map[string]any:
		there, _ := is.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(manifest)) {
			at := path + "." + chart.Shorten(name)
			if _, has := there[name]; manifest[name] == nil && !has {
				out = append(out, at)
			}
			out = append(out, nulls(manifest[name], there[name], at)...)
		}
	case []any:
		there, _ := is.([]any)
		for i := range min(len(manifest), len(there)) {
			out = append(out, nulls(manifest[i], there[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
	}
	return out
}
