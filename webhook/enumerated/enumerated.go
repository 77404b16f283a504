// SPDX-License-Identifier: Apache-2.0

// Package enumerated refuses values that the schema of a kind does not list. The API server refuses them, too, but adds an error without a
// field, `<nil>: Invalid value: null`, because it then leaves the other rules of the schema unchecked. Kinds that no mutating webhook
// receives (Check, Cluster, Envelope, Notification, Shipyard) keep the API server's message. No schema lists values of a map.
package enumerated

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/manifests"
	"shipper.dev/shipper/webhook/response"
)

// node is the part of a schema in which values are listed.
type node struct {
	// values are those of a text; none: any.
	values []string
	// fields are those of an object, items is the schema of the elements of a list.
	fields map[string]*node
	items  *node
}

// kinds are the schemas of all kinds, but for their status.
var kinds = sync.OnceValues(func() (map[string]*node, error) {
	definitions, err := manifests.Objects(manifests.CRD)
	if err != nil {
		return nil, err
	}
	out := map[string]*node{}
	for _, crd := range definitions {
		kind, _, errKind := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		versions, _, errVersions := unstructured.NestedSlice(crd.Object, "spec", "versions")
		if errKind != nil || errVersions != nil || len(versions) != 1 {
			return nil, fmt.Errorf("reading manifests: %s is not a definition with one version", crd.GetName())
		}
		version, _ := versions[0].(map[string]any)
		schema, _, err := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		if err != nil {
			return nil, fmt.Errorf("reading manifests: the schema of %s: %w", kind, err)
		}
		if out[kind] = nodeOf(schema); out[kind] != nil {
			delete(out[kind].fields, "status")
		}
	}
	return out, nil
})

// Prepare reads the schemas, which takes longer than a review should.
func Prepare() error {
	_, err := kinds()
	return err
}

// nodeOf is nil where a schema lists no values.
func nodeOf(schema map[string]any) *node {
	n := &node{fields: map[string]*node{}}
	listed, _ := schema["enum"].([]any)
	for _, value := range listed {
		n.values = append(n.values, fmt.Sprint(value))
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, of := range properties {
		if inner, is := of.(map[string]any); is {
			if child := nodeOf(inner); child != nil {
				n.fields[name] = child
			}
		}
	}
	if inner, is := schema["items"].(map[string]any); is {
		n.items = nodeOf(inner)
	}
	if len(n.values) == 0 && len(n.fields) == 0 && n.items == nil {
		return nil
	}
	return n
}

// Check refuses an object of a kind with values that its schema does not list. Those that old, which may be nil, has in the same place
// stay, as API servers let them.
func Check[T any](kind, name string, now, old *T) error {
	all, err := kinds()
	if err != nil {
		return err
	}
	errs := all[kind].unlisted(reflect.ValueOf(now), nil)
	if len(errs) == 0 {
		return nil
	}
	known := all[kind].unlisted(reflect.ValueOf(old), nil)
	return response.Invalidate(kind, name, slices.DeleteFunc(errs, func(e *field.Error) bool {
		return slices.ContainsFunc(known, func(was *field.Error) bool { return was.Field == e.Field && was.BadValue == e.BadValue })
	}))
}

// unlisted are the errors of the values below v, in the order of their paths. n may be nil.
func (n *node) unlisted(v reflect.Value, path *field.Path) field.ErrorList {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if n == nil || !v.IsValid() {
		return nil
	}
	var errs field.ErrorList
	switch v.Kind() {
	case reflect.String:
		if text := v.String(); len(n.values) > 0 && text != "" && !slices.Contains(n.values, text) {
			errs = append(errs, field.NotSupported(path, text, n.values))
		}
	case reflect.Slice:
		for i := range v.Len() {
			errs = append(errs, n.items.unlisted(v.Index(i), path.Index(i))...)
		}
	case reflect.Struct:
		fields := map[string]reflect.Value{}
		collect(v, fields)
		for _, name := range slices.Sorted(maps.Keys(n.fields)) {
			errs = append(errs, n.fields[name].unlisted(fields[name], path.Child(name))...)
		}
	}
	return errs
}

// collect has the fields of a struct by their names in JSON, those of embedded ones included.
func collect(v reflect.Value, to map[string]reflect.Value) {
	for i := range v.NumField() {
		of := v.Type().Field(i)
		name, _, _ := strings.Cut(of.Tag.Get("json"), ",")
		switch {
		case name != "":
			to[name] = v.Field(i)
		case of.Anonymous && of.Type.Kind() == reflect.Struct:
			collect(v.Field(i), to)
		}
	}
}
