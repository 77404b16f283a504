// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Values of a chart: the number of Pods, and for each container what people edit.
const (
	replicaValue    = "replicaCount"
	containersValue = "containers"
)

// editable are the fields of a container that are values, in the order of the template.
var editable = []string{"image", "env", "resources"}

// containerLists are the fields of a Pod that have containers. All share one set of names.
var containerLists = []string{"initContainers", "containers"}

// usualValues are the usual values of a chart.
func usualValues(w workload) shipper.ChartValues {
	out := map[string]any{}
	for _, list := range containerLists {
		found, _, _ := unstructured.NestedFieldNoCopy(w.template, "spec", list)
		all, _ := found.([]any)
		for _, one := range all {
			name, fields := valuesOfContainer(one)
			if _, twice := out[name]; name != "" && !twice {
				out[name] = fields
			}
		}
	}
	values := shipper.ChartValues{replicaValue: int64(w.replicas)}
	if len(out) > 0 {
		values[containersValue] = out
	}
	return values
}

// valuesOfContainer has the name of a container, empty if it has none, and its fields that are values.
func valuesOfContainer(one any) (name string, fields map[string]any) {
	from, _ := one.(map[string]any)
	name, _ = from["name"].(string)
	fields = map[string]any{}
	for _, key := range editable {
		if value, found := from[key]; found && value != nil {
			fields[key] = runtime.DeepCopyJSONValue(value)
		}
	}
	return name, fields
}

// templateText is the Pod template in the chart, indented. The fields of containers that are values come from those.
func templateText(template map[string]any, values shipper.ChartValues) (string, error) {
	rest := runtime.DeepCopyJSON(template)
	spec, _ := rest["spec"].(map[string]any)
	known, _ := values[containersValue].(map[string]any)
	lists := map[string][]any{}
	for _, list := range containerLists {
		if all, ok := spec[list].([]any); ok && len(all) > 0 && len(known) > 0 {
			lists[list] = all
			delete(spec, list)
		}
	}
	if len(lists) == 0 {
		return literal(rest, "    ")
	}
	delete(rest, "spec")
	text := ""
	if len(rest) > 0 {
		above, err := literal(rest, "    ")
		if err != nil {
			return "", err
		}
		text = above
	}
	text += "    spec:\n"
	written := map[string]bool{}
	for _, list := range containerLists {
		if len(lists[list]) == 0 {
			continue
		}
		text += "      " + list + ":\n"
		for _, one := range lists[list] {
			container, err := containerText(one, known, written)
			if err != nil {
				return "", err
			}
			text += container
		}
	}
	if len(spec) == 0 {
		return text, nil
	}
	below, err := literal(spec, "      ")
	return text + below, err
}

// containerText is an element of a list of containers. One without a name, or with that of an earlier one, has no values.
func containerText(one any, known map[string]any, written map[string]bool) (string, error) {
	fields, _ := one.(map[string]any)
	name, _ := fields["name"].(string)
	if _, is := known[name]; !is || written[name] {
		text, err := yaml.Marshal([]any{one})
		if err != nil {
			return "", fmt.Errorf("writing a template: %w", err)
		}
		return indented(verbatim(string(text)), "      "), nil
	}
	written[name] = true
	rest := runtime.DeepCopyJSON(fields)
	delete(rest, "name")
	text := fmt.Sprintf("      {{- $container := index .Values.%s %q }}\n      - name: %s\n", containersValue, name, verbatim(quoted(name)))
	for _, key := range editable {
		delete(rest, key)
		text += fmt.Sprintf("        {{- if hasKey $container %q }}\n        %s: {{ toJson $container.%s }}\n        {{- end }}\n", key, key, key)
	}
	if len(rest) == 0 {
		return text, nil
	}
	below, err := literal(rest, "        ")
	return text + below, err
}

// indented has an indent before each line that is not empty.
func indented(text, indent string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if line != "\n" {
			out.WriteString(indent)
		}
		out.WriteString(line)
	}
	return out.String()
}

// valuesFirst writes an object as YAML. The values of an Application, which people edit, are before its chart.
func valuesFirst(object map[string]any) (string, error) {
	const template = "\n  template:\n"
	values, found, _ := unstructured.NestedFieldNoCopy(object, "spec", "template", "values")
	unstructured.RemoveNestedField(object, "spec", "template", "values")
	text, err := yaml.Marshal(object)
	if err != nil || !found {
		return string(text), err
	}
	first, err := yaml.Marshal(map[string]any{"values": values})
	if err != nil {
		return "", err
	}
	above, below, _ := strings.Cut(string(text), template)
	return above + template + indented(string(first), "    ") + below, nil
}
