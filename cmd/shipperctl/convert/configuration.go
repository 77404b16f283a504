// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// referring are the fields of a Pod's spec that name another object, by kind.
var referring = map[string][]string{
	"ConfigMap": {
		"volumes/configMap/name", "volumes/projected/sources/configMap/name",
		"containers/env/valueFrom/configMapKeyRef/name", "containers/envFrom/configMapRef/name",
		"initContainers/env/valueFrom/configMapKeyRef/name", "initContainers/envFrom/configMapRef/name",
	},
	"PersistentVolumeClaim": {"volumes/persistentVolumeClaim/claimName"},
	"Secret": {
		"imagePullSecrets/name", "volumes/secret/secretName", "volumes/projected/sources/secret/name",
		"containers/env/valueFrom/secretKeyRef/name", "containers/envFrom/secretRef/name",
		"initContainers/env/valueFrom/secretKeyRef/name", "initContainers/envFrom/secretRef/name",
	},
	"ServiceAccount": {"serviceAccountName"},
}

// references are the names of the objects of a kind that a Pod template needs, sorted. Those that may be missing are not needed.
func references(template map[string]any, kind string) []string {
	var names []string
	for _, field := range referring[kind] {
		names = append(names, namesAt(template["spec"], strings.Split(field, "/"))...)
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// namesAt are the texts at a path, which leads through lists by each of their elements.
func namesAt(value any, path []string) (names []string) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			names = append(names, namesAt(element, path)...)
		}
	case map[string]any:
		if len(path) > 1 {
			return namesAt(value[path[0]], path[1:])
		}
		if name, _ := value[path[0]].(string); name != "" && value["optional"] != true {
			names = append(names, name)
		}
	}
	return names
}

// configurationOf are the ConfigMaps and claims of the input that the Pods of a template use, by the indexes of their documents. It reports
// what the Pods need and the chart does not have.
func configurationOf(d document, template map[string]any, all []document, report *report) (found []int) {
	var missing []string
	for _, kind := range []string{"ConfigMap", "PersistentVolumeClaim", "Secret", "ServiceAccount"} {
		for _, name := range references(template, kind) {
			at := slices.IndexFunc(all, func(other document) bool {
				return other.is("v1", kind) && other.GetName() == name && other.besides(d)
			})
			switch {
			case at >= 0 && kind == "ConfigMap":
				report.addOf(all[at], "data", "each Release has its own copy, which does not change when the ConfigMap is edited in the cluster: "+
					"change it in the chart")
				found = append(found, at)
			case at >= 0 && kind == "PersistentVolumeClaim":
				found = append(found, at)
			default:
				missing = append(missing, kind+" "+name)
			}
		}
	}
	if len(missing) > 0 {
		report.add("spec.template", "needs objects that the chart does not have: apply them to each application cluster: %s",
			strings.Join(missing, ", "))
	}
	return found
}

// cleanedConfiguration is a ConfigMap or a claim without what clusters write into it.
func cleanedConfiguration(d document) map[string]any {
	out := map[string]any{
		"apiVersion": "v1", "kind": d.GetKind(), "metadata": metadataOf(d.GetName(), d.GetLabels(), d.GetAnnotations()),
	}
	for _, field := range []string{"binaryData", "data", "immutable", "spec"} {
		if value, found, _ := unstructured.NestedFieldCopy(d.Object, field); found && value != nil {
			out[field] = value
		}
	}
	if d.GetUID() != "" { // the API server bound the claim, and annotated how
		unstructured.RemoveNestedField(out, "spec", "volumeName")
	}
	for _, key := range []string{"bind-completed", "bound-by-controller"} {
		unstructured.RemoveNestedField(out, "metadata", "annotations", "pv.kubernetes.io/"+key)
	}
	return out
}
