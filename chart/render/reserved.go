// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// removeReserved removes Shipper's labels and annotations from an object if it is a Pod, and from the metadata of all templates
// in it. With them, its Pods would join the Service of any Application in the namespace. what names it.
func removeReserved(o *unstructured.Unstructured, what string, t Target) error {
	if o.GetKind() == "CustomResourceDefinition" { // a schema has no metadata of its own
		return nil
	}
	if o.GetAPIVersion() == "v1" && o.GetKind() == "Pod" {
		removeKeys(o.Object, isReservedLabel, "metadata", "labels")
		removeKeys(o.Object, func(key, _ string) bool {
			return shipper.ReservedAnnotation(key) && key != shipper.HookTimeoutAnnotation
		}, "metadata", "annotations")
	}
	labels := isReservedLabel
	for _, key := range selectedKeys(o) {
		if !shipper.ReservedLabel(key) {
			continue
		}
		value, found, _ := unstructured.NestedString(o.Object, "spec", "template", "metadata", "labels", key)
		if !found {
			continue
		}
		if !t.gives(key, value) {
			return chartError("%s: spec.selector asks for the label %s, which only Shipper sets on Pods; "+
				"take it out of spec.selector and of spec.template.metadata.labels", what, key)
		}
		// A selector is immutable: an installed object could not be applied without the label.
		inner := labels
		labels = func(k, v string) bool { return inner(k, v) && (k != key || v != value) }
	}
	for field, value := range o.Object {
		if field != "metadata" {
			removeNested(value, labels)
		}
	}
	return nil
}

// marks are the annotations by which Shipper recognises what it has written, and what it has to do with it.
var marks = []string{
	shipper.PlacedOwnerAnnotation, shipper.InstalledDigestAnnotation, shipper.LotAnnotation, shipper.ReplicasAnnotation,
	shipper.BaseAnnotation, shipper.KeptPortsAnnotation,
}

// removeMarks removes these annotations from what a chart renders. With them, an object of a chart would pass for one that another
// Application has placed, or that Shipper changes in place.
func removeMarks(o *unstructured.Unstructured) {
	removeKeys(o.Object, func(key, _ string) bool { return slices.Contains(marks, key) }, "metadata", "annotations")
}

// gives reports whether a label of Shipper's has the value of the target itself.
func (t Target) gives(key, value string) bool {
	return key == shipper.AppLabel && value == t.App || key == shipper.ReleaseLabel && value == t.ReleaseName
}

// selectedKeys are the label keys in spec.selector.
func selectedKeys(o *unstructured.Unstructured) []string {
	selector, found, err := unstructured.NestedMap(o.Object, "spec", "selector")
	if !found || err != nil {
		return nil
	}
	var keys []string
	for key, value := range selector {
		if _, isText := value.(string); isText { // ReplicationController
			keys = append(keys, key)
		}
	}
	labels, _, _ := unstructured.NestedMap(selector, "matchLabels")
	for key := range labels {
		keys = append(keys, key)
	}
	expressions, _, _ := unstructured.NestedSlice(selector, "matchExpressions")
	for _, expression := range expressions {
		if fields, ok := expression.(map[string]any); ok {
			if key, ok := fields["key"].(string); ok {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// removeNested removes labels, and Shipper's annotations, from metadata at any depth. Custom resources have templates of Pods
// too, under names like podMetadata.
func removeNested(value any, label func(key, value string) bool) {
	switch value := value.(type) {
	case map[string]any:
		for field, inner := range value {
			if metadata, ok := inner.(map[string]any); ok && strings.HasSuffix(strings.ToLower(field), "metadata") {
				removeKeys(metadata, label, "labels")
				removeKeys(metadata, isReservedAnnotation, "annotations")
			}
			removeNested(inner, label)
		}
	case []any:
		for _, inner := range value {
			removeNested(inner, label)
		}
	}
}

func isReservedLabel(key, _ string) bool { return shipper.ReservedLabel(key) }

func isReservedAnnotation(key, _ string) bool { return shipper.ReservedAnnotation(key) }

// removeKeys removes the entries of a map of strings for which remove is true. It ignores other values.
func removeKeys(object map[string]any, remove func(key, value string) bool, fields ...string) {
	value, _, err := unstructured.NestedFieldNoCopy(object, fields...)
	entries, ok := value.(map[string]any)
	if err != nil || !ok {
		return
	}
	for key, value := range entries {
		text, _ := value.(string)
		if remove(key, text) {
			delete(entries, key)
		}
	}
}
