// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// maxValue is how much of a value is shown, in bytes.
const maxValue = 128

// Place is where a field is: as people write it in Text, and as managedFields do in Path.
type Place struct {
	Text string
	Path []string
}

// Field is the place of a map's entry.
func (p Place) Field(name string) Place {
	text := p.Text + "." + name
	if strings.ContainsAny(name, "./") {
		text = fmt.Sprintf("%s[%q]", p.Text, name)
	}
	return Place{strings.TrimPrefix(text, "."), append(slices.Clone(p.Path), "f:"+name)}
}

// element is the place of a list's element that has a name.
func (p Place) element(name string) Place {
	key, err := json.Marshal(name)
	if err != nil { // a string can always be written
		key = nil
	}
	return Place{fmt.Sprintf("%s[name=%s]", p.Text, name), append(slices.Clone(p.Path), `k:"name":`+string(key))}
}

func (p Place) index(i int) Place {
	return Place{fmt.Sprintf("%s[%d]", p.Text, i), append(slices.Clone(p.Path), "?")}
}

// Difference is a field that is not as it is to be; nil is a field that is not there.
type Difference struct {
	Place
	Want, Have any
}

// Differences are those between an object as it would be if it were applied again, and as it is. What the API server
// itself writes, and status, is none.
func Differences(want, have *unstructured.Unstructured) []Difference {
	return differ(Place{}, bare(want), bare(have))
}

// WithoutLaterWrites drops differences in labels and annotations that object, as released, does not set: a dry run adds none of those, so
// another client wrote them after the object was read. The revision of a Deployment is such an annotation.
func WithoutLaterWrites(list []Difference, object *unstructured.Unstructured) []Difference {
	return slices.DeleteFunc(list, func(d Difference) bool {
		if d.Want == nil || len(d.Path) != 3 || d.Path[0] != "f:metadata" {
			return false
		}
		field, key := strings.TrimPrefix(d.Path[1], "f:"), strings.TrimPrefix(d.Path[2], "f:")
		if field != "labels" && field != "annotations" {
			return false
		}
		_, set, err := unstructured.NestedFieldNoCopy(object.Object, "metadata", field, key)
		return err == nil && !set
	})
}

// bare is what people and controllers write of an object.
func bare(u *unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	for key, value := range u.Object {
		switch key {
		case "apiVersion", "kind", "status", "metadata":
		default:
			out[key] = value
		}
	}
	meta := map[string]any{}
	for _, key := range []string{"labels", "annotations", "ownerReferences"} {
		if value, found, err := unstructured.NestedFieldNoCopy(u.Object, "metadata", key); err == nil && found {
			meta[key] = value
		}
	}
	out["metadata"] = meta
	return out
}

func differ(at Place, want, have any) []Difference {
	if equality.Semantic.DeepEqual(want, have) {
		return nil
	}
	if w, h, ok := both[map[string]any](want, have); ok {
		var out []Difference
		keys := maps.Clone(w)
		maps.Copy(keys, h)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			out = append(out, differ(at.Field(key), w[key], h[key])...)
		}
		return out
	}
	if w, h, ok := both[[]any](want, have); ok {
		if wn, hn := byName(w), byName(h); wn != nil && hn != nil {
			var out []Difference
			keys := maps.Clone(wn)
			maps.Copy(keys, hn)
			for _, name := range slices.Sorted(maps.Keys(keys)) {
				out = append(out, differ(at.element(name), wn[name], hn[name])...)
			}
			return out
		}
		if len(w) == len(h) {
			var out []Difference
			for i := range w {
				out = append(out, differ(at.index(i), w[i], h[i])...)
			}
			return out
		}
	}
	return []Difference{{at, want, have}}
}

// both are two values of one type; one that is not there is empty if the other is a map.
func both[T any](a, b any) (x, y T, ok bool) {
	x, xOK := a.(T)
	y, yOK := b.(T)
	return x, y, xOK && yOK
}

// byName are the elements of a list by their names; nil when they do not all have one of their own.
func byName(list []any) map[string]any {
	out := map[string]any{}
	for _, element := range list {
		m, ok := element.(map[string]any)
		name, named := m["name"].(string)
		if _, twice := out[name]; !ok || !named || twice {
			return nil
		}
		out[name] = element
	}
	return out
}

// Fields are differences of an object as status has them, without values if they are secret, as those of Secrets are. of names the object.
func Fields(
	of shipper.DriftedField, list []Difference, managed []metav1.ManagedFieldsEntry, secret bool,
) []shipper.DriftedField {
	secret = secret || of.APIVersion == "v1" && of.Kind == "Secret"
	var out []shipper.DriftedField
	for _, d := range list {
		f := of
		f.Field = report.Shorten(d.Text, 2*maxValue)
		if by := writer(managed, d.Path); by != nil {
			f.Manager, f.Since = by.Manager, by.Time
		}
		if f.Hidden = secret; !secret {
			f.Want, f.Have = shown(d.Want), shown(d.Have)
		}
		out = append(out, f)
	}
	return out
}

// shown is a value as JSON; empty when there is none.
func shown(v any) string {
	if v == nil {
		return ""
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return report.Shorten(string(raw), maxValue)
}

// writer is the entry of managedFields of the last writer of a field; nil for a field that no longer exists.
func writer(managed []metav1.ManagedFieldsEntry, path []string) *metav1.ManagedFieldsEntry {
	for i := range slices.Backward(managed) {
		m := &managed[i]
		var fields map[string]any
		if m.FieldsV1 == nil || m.Manager == shipper.FieldOwner || json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if has(fields, path) {
			return m
		}
	}
	return nil
}

// has reports whether managed fields have a path, as far as they say: a value that is set as a whole includes all its parts.
func has(fields map[string]any, path []string) bool {
	for _, element := range path {
		if element == "?" || strings.HasPrefix(element, "k:") && !named(fields) {
			return len(fields) > 0
		}
		next, found := fields[element].(map[string]any)
		for key, value := range fields {
			if inner, isKey := strings.CutPrefix(element, "k:"); isKey && strings.HasPrefix(key, "k:") && strings.Contains(key, inner) {
				next, found = value.(map[string]any)
			}
		}
		if !found {
			return false
		}
		if len(next) == 0 {
			return true
		}
		fields = next
	}
	return true
}

// named reports whether elements of a list are distinguished by their names.
func named(fields map[string]any) bool {
	for key := range fields {
		if strings.HasPrefix(key, "k:") && strings.Contains(key, `"name":`) {
			return true
		}
	}
	return false
}

// WithoutScaled takes out of an object what was written by a subresource, as who scales does: it is not the chart's any more.
func WithoutScaled(object *unstructured.Unstructured, managed []metav1.ManagedFieldsEntry) {
	for _, m := range managed {
		var fields map[string]any
		if m.Subresource == "" || m.FieldsV1 == nil || json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		for _, path := range leaves(fields, nil) {
			if path[0] != "metadata" {
				unstructured.RemoveNestedField(object.Object, path...)
			}
		}
	}
}

// leaves are the paths to fields that are in no list.
func leaves(fields map[string]any, at []string) [][]string {
	var out [][]string
	for key, value := range fields {
		name, isField := strings.CutPrefix(key, "f:")
		inner, isMap := value.(map[string]any)
		switch {
		case !isField || !isMap:
		case len(inner) == 0:
			out = append(out, append(slices.Clone(at), name))
		default:
			out = append(out, leaves(inner, append(slices.Clone(at), name))...)
		}
	}
	return out
}
