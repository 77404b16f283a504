// SPDX-License-Identifier: Apache-2.0

package duplicates

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
)

// left are lists that a manifest has no reason to have.
var left = []string{
	"status.", "metadata.ownerReferences", ".metadata.", // of templates
	"spec.podPreemptionPolicy.", "spec.skipNodeOperations", "spec.drivers", "spec.podCIDRs", // of nodes
}

// TestAllListsWithKeysAreKnown tries a duplicate in each list of the kinds in the stable APIs: those that the schema of server-side apply
// refuses are in the table.
func TestAllListsWithKeysAreKnown(t *testing.T) {
	tried := 0
	converter := applyconfigurations.NewTypeConverter(scheme.Scheme)
	for gvk, typed := range scheme.Scheme.AllKnownTypes() {
		if gvk.Version != "v1" && gvk.Version != "v2" || strings.HasSuffix(gvk.Kind, "List") {
			continue
		}
		for _, path := range listsIn(typed, nil, 0) {
			text := strings.Join(path, ".")
			if slices.ContainsFunc(left, func(l string) bool { return strings.Contains(text, l) }) || gvk.Kind == "ComponentStatus" {
				continue
			}
			o := unstructured.Unstructured{Object: map[string]any{}}
			o.SetGroupVersionKind(gvk)
			put(o.Object, typed, path)
			_, err := converter.ObjectToTyped(&o)
			if err == nil || !strings.Contains(err.Error(), "duplicate entries") {
				continue
			}
			tried++
			if _, found := Remove([]unstructured.Unstructured{o}); len(found) == 0 {
				t.Errorf("%s: %s is not in the table: %v", gvk, text, err)
			}
		}
	}
	if tried < 200 {
		t.Errorf("only %d lists have been tried", tried)
	}
}

// listsIn are the paths of all lists in a type.
func listsIn(t reflect.Type, path []string, depth int) (out [][]string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || depth > 9 {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		at := path
		if name != "" {
			at = append(slices.Clone(path), name)
		}
		of := f.Type
		if name == "-" || of == t || name == "" && !f.Anonymous {
			continue
		}
		if of.Kind() == reflect.Slice {
			out = append(out, at)
			of = of.Elem()
		}
		out = append(out, listsIn(of, at, depth+1)...)
	}
	return out
}

// element is one of a list, with all texts and numbers, so that it has its keys.
func element(t reflect.Type) any {
	out := map[string]any{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "":
		case f.Type.Kind() == reflect.String:
			out[name] = "x"
		case f.Type.Kind() == reflect.Int32:
			out[name] = int64(1)
		}
	}
	return out
}

// put writes a list with two equal elements at a path of a value of a type, with one element in each list on the way.
func put(in map[string]any, t reflect.Type, path []string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	at := slices.IndexFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return name == path[0]
	})
	of := reflect.VisibleFields(t)[at].Type
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.String:
		in[path[0]] = []any{"x", "x"}
	case of.Kind() == reflect.Slice && of.Elem().Kind() != reflect.Struct:
		in[path[0]] = []any{int64(1), int64(1)}
	case of.Kind() == reflect.Slice && len(path) == 1:
		in[path[0]] = []any{element(of.Elem()), element(of.Elem())}
	case of.Kind() == reflect.Slice:
		inner, _ := element(of.Elem()).(map[string]any)
		in[path[0]] = []any{inner}
		put(inner, of.Elem(), path[1:])
	default:
		inner := map[string]any{}
		in[path[0]] = inner
		put(inner, of, path[1:])
	}
}

func TestReferencesAreExpandedAsByTheKubelet(t *testing.T) {
	for text, want := range map[string]string{
		"$(A)": "x", "$$(A)": "$$(A)", "$$$(A)": "$$x", "a$(A)b$(B)$(A": "axb$(B)$(A", "$A": "$A", "": "",
		"$($(A))$": "$($(A))$", "$($(A)$(A)": "$($(A)x",
	} {
		got, found := expand(text, func(name string) (string, bool) { return "x", name == "A" })
		if diff := cmp.Diff(want, got); diff != "" || found != (text != want) {
			t.Errorf("%s: %t %s", text, found, diff)
		}
	}
}
