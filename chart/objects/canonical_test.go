// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func digest(t *testing.T, objects []unstructured.Unstructured) string {
	t.Helper()
	lines, err := canonicalLines(objects)
	if err != nil {
		t.Fatal(err)
	}
	return digestOf(lines)
}

func TestCanonicalIsOneSortedLine(t *testing.T) {
	o := object(t, `{kind: ConfigMap, apiVersion: v1, metadata: {namespace: work, name: a},
		data: {b: "x<y", a: "1\n2"}, m: [1.0, 1.5, -0.0]}`)
	got, err := Canonical(&o)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"apiVersion":"v1","data":{"a":"1\n2","b":"x<y"},` +
		`"kind":"ConfigMap","m":[1,1.5,0],"metadata":{"name":"a","namespace":"work"}}` + "\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestCanonicalNamesTheObjectThatIsNotJSON(t *testing.T) {
	o := named("v1", "ConfigMap", "work", "a")
	o.Object["n"] = math.NaN()
	_, err := Canonical(&o)
	if err == nil || !strings.HasPrefix(err.Error(), "encoding ConfigMap work/a: ") {
		t.Errorf("got %v", err)
	}
}

// TestDigestIsStable has the output of sha256sum for the line. Stored digests depend on it: another one makes a Release of every
// Application.
func TestDigestIsStable(t *testing.T) {
	got := digest(t, objectsOf(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: work}, data: {k: v}}`))
	if diff := cmp.Diff("f496020e7f93fb540e6db88c2312c55d28e5a9868a66d43ce4cd94adf398f42e", got); diff != "" {
		t.Error(diff)
	}
}

func TestDigestIgnoresTheOrderOfObjects(t *testing.T) {
	all := []unstructured.Unstructured{
		named("v1", "ConfigMap", "work", "a"), named("v1", "ConfigMap", "other", "a"), named("v1", "Secret", "work", "a"),
		named("apps/v1", "Deployment", "work", "a"), named("v1", "Namespace", "", "work"),
	}
	want := digest(t, all)
	for range all {
		all = append(all[1:], all[0])
		if got := digest(t, all); got != want {
			t.Errorf("another order gives %s, want %s", got, want)
		}
	}
	slices.Reverse(all)
	if got := digest(t, all); got != want {
		t.Errorf("the reverse order gives %s, want %s", got, want)
	}
}

func TestDigestsOfDifferentContentDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, text := range []string{
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: "1"}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: 1}}`,
		`{apiVersion: v2, kind: ConfigMap, metadata: {name: a}}`,
	} {
		got := digest(t, objectsOf(t, text))
		if other, twice := seen[got]; twice {
			t.Errorf("%s and %s have one digest", text, other)
		}
		seen[got] = text
	}
	if got := digest(t, nil); seen[got] != "" {
		t.Errorf("%s has the digest of nothing", seen[got])
	}
}
