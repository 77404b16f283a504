// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Rendering is what a Release installs in clusters where it is the same, also in `-o json`.
type Rendering struct {
	Namespace   string   `json:"namespace"`
	Application string   `json:"application"`
	Release     string   `json:"release"`
	Clusters    []string `json:"clusters"`
	// Objects are in the order they are installed.
	Objects []*unstructured.Unstructured `json:"objects"`
	// Hooks are in the order they are run, each at the moments that its annotation names.
	Hooks []*unstructured.Unstructured `json:"hooks,omitempty"`
}

// merge adds a rendering to those of the same Release: its clusters to one that has the same objects, if there is one.
func merge(all []Rendering, one Rendering) []Rendering {
	for i := range all {
		if reflect.DeepEqual(all[i].Objects, one.Objects) && reflect.DeepEqual(all[i].Hooks, one.Hooks) {
			all[i].Clusters = append(all[i].Clusters, one.Clusters...)
			return all
		}
	}
	return append(all, one)
}

// manifests are YAML documents, each rendering after a comment that says where it is installed.
func manifests(all []Rendering) (string, error) {
	var out strings.Builder
	for _, r := range all {
		fmt.Fprintf(&out, "# Release %s/%s in %s\n", r.Namespace, r.Release, strings.Join(r.Clusters, ", "))
		for _, o := range slices.Concat(r.Objects, r.Hooks) {
			text, err := yaml.Marshal(o.Object)
			if err != nil {
				return "", fmt.Errorf("writing %s %s: %w", o.GetKind(), o.GetName(), err)
			}
			out.WriteString("---\n")
			out.Write(text)
		}
	}
	return out.String(), nil
}
