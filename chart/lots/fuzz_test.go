// SPDX-License-Identifier: Apache-2.0

package lots_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/chart/lots"
	"shipper.dev/shipper/chart/render"
)

// FuzzLots sorts any objects, given as lines of JSON: it never panics, changes nothing of what it was given, always finds the same, and
// writes no object twice without refusing it.
func FuzzLots(f *testing.F) {
	small, err := filepath.Glob(filepath.Join("testdata", "small", "*.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range small {
		content, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var lines []byte
		for document := range bytes.SplitSeq(bytes.ReplaceAll(content, []byte("{{ .Release.Name }}"), []byte("shop")), []byte("\n---\n")) {
			if line, err := yaml.YAMLToJSON(document); err == nil {
				lines = append(append(lines, line...), '\n')
			}
		}
		f.Add(lines)
	}
	for _, odd := range []string{
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":["a"],"labels":{"a":1}},"spec":{"template":[{}],"replicas":1.5}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":null,"spec":{"template":{"spec":{"volumes":{"configMap":{"name":{}}}}}}}`,
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a,b"},"spec":{"selector":[],"ports":[null,{"port":{}}],"clusterIP":[]}}`,
	} {
		f.Add([]byte(odd))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		var given []unstructured.Unstructured
		for line := range bytes.Lines(content) {
			o := unstructured.Unstructured{}
			if json.Unmarshal(line, &o.Object) != nil || o.Object == nil {
				return
			}
			given = append(given, o)
		}
		before := make([]unstructured.Unstructured, len(given))
		for i := range given {
			before[i] = *given[i].DeepCopy()
		}
		manifest := render.Manifest{Objects: given}
		first, err := manifest.Lots(targetOf("shop", 0))
		again, _ := manifest.Lots(targetOf("shop", 0))
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("-first +again:\n%s", diff)
		}
		if diff := cmp.Diff(before, given, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("what was given has changed: -want +got:\n%s", diff)
		}
		if (err != nil) != (len(first.Refused) > 0) || len(first.Entries) != len(given) {
			t.Errorf("%v, %q", err, first.Refused)
		}
		written := map[string]bool{}
		for _, o := range first.Objects() {
			if written[id(o)] && err == nil {
				t.Errorf("%s is written twice", id(o))
			}
			written[id(o)] = true
		}
		for i := range given {
			ports, _, _ := unstructured.NestedFieldNoCopy(given[i].Object, "spec", "ports")
			list, _ := ports.([]any)
			once, _ := lots.MergePorts(list, list, nil)
			if twice, _ := lots.MergePorts(list, once, nil); !cmp.Equal(once, twice) {
				t.Errorf("ports %v are merged to %v, and then to %v", list, once, twice)
			}
		}
	})
}
