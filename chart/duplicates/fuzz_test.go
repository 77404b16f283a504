// SPDX-License-Identifier: Apache-2.0

package duplicates

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// FuzzRemove removes duplicates from any objects, given as lines of JSON: it never panics, changes nothing of what it was given, returns
// nothing much larger, and finds nothing in what it returns, unless that is refused.
func FuzzRemove(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","ports":[` +
			`{"containerPort":80,"name":"x"},{"containerPort":80,"name":"y"}],` +
			`"env":[{"name":"A","value":"$(A)"},{"name":"A","value":"$$(A)$(A)"},{"name":"A","valueFrom":{}}]}],` +
			`"hostAliases":[{"ip":"1","hostnames":[{}]},{"ip":"1","hostnames":[{},null]}]}}` + "\n" +
			`{"apiVersion":"v1","kind":"Service","spec":{"selector":{"a":"b"},"ports":[{"targetPort":"y"},null,{"targetPort":[]}]}}`,
		`{"apiVersion":"batch/v1","kind":"Job","metadata":{"finalizers":["a","a",[],{}]},"spec":{"podFailurePolicy":{"rules":[{"onExitCodes":` +
			`{"values":[1,1]}},7]},"template":{"spec":{"containers":{},"volumes":[{"name":{}},{"name":{}},{"name":null}]}}}}`,
		`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"ports":[{"containerPort":{"a":1},"hostPort":{}},{"containerPort":{"a":1},` +
			`"hostPort":[]}],"livenessProbe":{"httpGet":{"port":{}}}}]}}`,
		`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"env":[{"name":"A","value":"` + strings.Repeat("x", 200) +
			`"},{"name":"B","value":"` + strings.Repeat("$(A)", 200) + `"},{"name":"A"}]}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		var given, before []unstructured.Unstructured
		for line := range bytes.Lines(content) {
			o := unstructured.Unstructured{}
			if json.Unmarshal(line, &o.Object) != nil || o.Object == nil {
				return
			}
			given, before = append(given, o), append(before, *o.DeepCopy())
		}
		got, found := Remove(given)
		for i := range got {
			// The names that ports get have at most 15 bytes, and a field that has one has more.
			if was, is := len(lineOf(t, given[i])), len(lineOf(t, got[i])); is > 2*was+6*maxGrowth {
				t.Errorf("object %d had %d bytes, and has %d", i, was, is)
			}
		}
		if diff := cmp.Diff(before, given); diff != "" {
			t.Errorf("what was given has changed: -want +got:\n%s", diff)
		}
		if slices.ContainsFunc(found, func(f Finding) bool { return f.Refused }) {
			return
		}
		if _, again := Remove(got); again != nil {
			t.Errorf("%v is found again", again)
		}
	})
}

// lineOf is the text of an object.
func lineOf(t *testing.T, o unstructured.Unstructured) []byte {
	t.Helper()
	out, err := json.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
