// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// object is the object of a YAML text, as the API server's JSON is read.
func object(t *testing.T, text string) unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var out unstructured.Unstructured
	if err := json.Unmarshal(raw, &out.Object); err != nil {
		t.Fatal(err)
	}
	return out
}

// objectsOf are the objects of YAML texts.
func objectsOf(t *testing.T, texts ...string) []unstructured.Unstructured {
	t.Helper()
	out := make([]unstructured.Unstructured, len(texts))
	for i, text := range texts {
		out[i] = object(t, text)
	}
	return out
}

// named is an object with nothing but its identity.
func named(apiVersion, kind, namespace, name string) unstructured.Unstructured {
	var o unstructured.Unstructured
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}
