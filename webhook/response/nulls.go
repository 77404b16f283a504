// SPDX-License-Identifier: Apache-2.0

package response

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxNulls bounds the fields that a warning names.
const maxNulls = 5

// WarnOfNulls warns of fields, at a path or below, that the manifest which kubectl applied has as null: `gate:` without braces looks like a
// gate. The API server drops nulls before admission, so that only kubectl's own annotation shows them.
func (a *Response) WarnOfNulls(annotations map[string]string, path ...string) {
	text := annotations[corev1.LastAppliedConfigAnnotation]
	if !strings.Contains(text, "null") {
		return
	}
	var manifest any
	if json.Unmarshal([]byte(text), &manifest) != nil {
		return // a user may write any text there
	}
	at := (*field.Path)(nil)
	for _, name := range path {
		fields, _ := manifest.(map[string]any)
		if manifest = fields[name]; manifest == nil {
			return
		}
		at = at.Child(name)
	}
	found := nulls(manifest, at)
	if len(found) == 0 {
		return
	}
	more := ""
	if len(found) > maxNulls {
		found, more = found[:maxNulls], " and others"
	}
	a.Warn("null in the manifest, which is the same as to leave the field out: %s%s; write a value, such as {} for a gate",
		strings.Join(found, ", "), more)
}

// nulls are the fields below a value that are null, as paths, at most one more than maxNulls.
func nulls(value any, at *field.Path) []string {
	var out []string
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if len(out) > maxNulls {
				return out
			}
			if next := at.Child(name); value[name] == nil {
				out = append(out, next.String())
			} else {
				out = append(out, nulls(value[name], next)...)
			}
		}
	case []any:
		for i, one := range value {
			if len(out) > maxNulls {
				return out
			}
			out = append(out, nulls(one, at.Index(i))...)
		}
	}
	return out
}
