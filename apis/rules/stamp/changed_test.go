// SPDX-License-Identifier: Apache-2.0

package stamp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestChangedValues(t *testing.T) {
	for sentence, tc := range map[string]struct {
		before, after string
		want          []string
	}{
		"nothing":                              {"a: 1\nb: {c: [1, 2]}", "b: {c: [1, 2]}\na: 1.0", nil},
		"no values, and none":                  {"", "{}", nil},
		"one of a map within a map":            {"image: {name: nginx, tag: a}", "image: {name: nginx, tag: b}", []string{"image.tag"}},
		"an added and a removed key":           {"a: 1\nb: 2", "b: 2\nc: {d: 3}", []string{"a", "c"}},
		"a map in the place of something else": {"a: {b: 1}", "a: 1", []string{"a"}},
		"a list as one":                        {"a: [1, 2]", "a: [1, 3]", []string{"a"}},
		"null is not absent":                   {"a: null", "{}", []string{"a"}},
		"an empty map is not another":          {"a: {}", "a: {b: 1}", []string{"a"}},
		"a key with dots":                      {"host: {nginx.io/a: 1}", "host: {nginx.io/a: 2}", []string{`host.nginx\.io/a`}},
		"a key that would write on a screen":   {"{}", `{"\e[2J": 1, "": 2}`, []string{`""`, `"\x1b[2J"`}},
		"secrets, by their keys":               {"password: hunter2", "password: hunter3", []string{"password"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := stamp.ChangedValues(environmentOf(t, tc.before), environmentOf(t, tc.after))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestChangedValuesOfPlaces(t *testing.T) {
	of := func(name string, tag int64, patch ...shipper.PatchOperation) shipper.ValuesFor {
		return shipper.ValuesFor{Name: name, Values: &shipper.ChartValues{"image": map[string]any{"tag": tag}}, Patch: patch}
	}
	before := &shipper.ReleaseEnvironment{
		ValuesPerRegion:  []shipper.ValuesFor{of("eu", 1), of("us", 1)},
		ValuesPerCluster: []shipper.ValuesFor{of("west", 1), of("gone", 1)},
	}
	after := &shipper.ReleaseEnvironment{
		ValuesPerRegion:  []shipper.ValuesFor{of("us", 1), of("eu", 2)},
		ValuesPerCluster: []shipper.ValuesFor{of("west", 1, shipper.PatchOperation{"op": "remove", "path": "/x"})},
	}
	want := []string{"valuesPerCluster[gone].image", "valuesPerCluster[west] patch", "valuesPerRegion[eu].image.tag"}
	if diff := cmp.Diff(want, stamp.ChangedValues(before, after)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func environmentOf(t *testing.T, text string) *shipper.ReleaseEnvironment {
	t.Helper()
	var values shipper.ChartValues
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return &shipper.ReleaseEnvironment{Values: &values}
}

func TestChangedSources(t *testing.T) {
	secret := func(name string) shipper.ValuesSource {
		return shipper.ValuesSource{SecretKeyRef: &shipper.ValuesKeyRef{Name: name}}
	}
	env := func(digest string, from ...shipper.ValuesSource) *shipper.ReleaseEnvironment {
		out := &shipper.ReleaseEnvironment{ValuesFrom: from, ValuesDigests: map[string]string{}}
		for _, source := range from {
			out.ValuesDigests[source.String()] = digest
		}
		return out
	}
	for sentence, tc := range map[string]struct {
		before, after *shipper.ReleaseEnvironment
		want          []string
		same          bool
	}{
		"nothing":            {env("x", secret("a")), env("x", secret("a")), nil, true},
		"the content of one": {env("x", secret("a")), env("y", secret("a")), []string{"valuesFrom[Secret/a/values.yaml]"}, false},
		"one comes":          {env("x", secret("a")), env("x", secret("a"), secret("b")), []string{"valuesFrom[Secret/b/values.yaml]"}, false},
		"one goes":           {env("x", secret("a")), env("x"), []string{"valuesFrom[Secret/a/values.yaml]"}, false},
		"their order":        {env("x", secret("a"), secret("b")), env("x", secret("b"), secret("a")), []string{"valuesFrom"}, false},
		"none, and no list":  {env("x"), &shipper.ReleaseEnvironment{}, nil, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, stamp.ChangedValues(tc.before, tc.after)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if same := stamp.SameEnvironment(tc.before, tc.after); same != tc.same {
				t.Errorf("they are the same: %v", same)
			}
			a, _ := stamp.Hash(*tc.before)
			b, _ := stamp.Hash(*tc.after)
			if !tc.same && a == b {
				t.Error("they have the same hash")
			}
		})
	}
}
