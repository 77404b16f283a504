// SPDX-License-Identifier: Apache-2.0

package values_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/values"
)

// layersOf reads values, valuesPerRegion and valuesPerCluster as an API server hands them on.
func layersOf(t *testing.T, text string) values.Layers {
	t.Helper()
	var env shipper.ReleaseEnvironment
	if err := json.Unmarshal([]byte(text), &env); err != nil {
		t.Fatal(err)
	}
	return values.LayersOf(&env)
}

func TestLayersAreMergedAsHelmMergesFiles(t *testing.T) {
	const common = `"values": {"image": {"tag": "1", "pull": "Always"}, "list": [1, 2], "n": 9007199254740993}`
	for sentence, tc := range map[string]struct{ layers, want string }{
		"nothing is said of the place": {
			`"valuesPerCluster": [{"name": "east", "values": {"n": 1}}], "valuesPerRegion": [{"name": "us", "values": {"n": 2}}]`,
			`{"image": {"tag": "1", "pull": "Always"}, "list": [1, 2], "n": 9007199254740993}`,
		},
		"maps are merged and lists replaced": {
			`"valuesPerRegion": [{"name": "eu", "values": {"image": {"tag": "2"}, "list": [3]}}]`,
			`{"image": {"tag": "2", "pull": "Always"}, "list": [3], "n": 9007199254740993}`,
		},
		"a cluster wins over its region": {
			`"valuesPerRegion": [{"name": "eu", "values": {"image": {"tag": "2", "more": true}}}],
			 "valuesPerCluster": [{"name": "west", "values": {"image": {"tag": "3"}}}]`,
			`{"image": {"tag": "3", "pull": "Always", "more": true}, "list": [1, 2], "n": 9007199254740993}`,
		},
		"a null stays, for Helm to delete the chart's default by": {
			`"valuesPerCluster": [{"name": "west", "values": {"image": {"pull": null}, "list": null}}]`,
			`{"image": {"tag": "1", "pull": null}, "list": null, "n": 9007199254740993}`,
		},
		"a map replaces another value, and the reverse": {
			`"valuesPerCluster": [{"name": "west", "values": {"image": "nginx", "list": {"a": 1}}}]`,
			`{"image": "nginx", "list": {"a": 1}, "n": 9007199254740993}`,
		},
		"patches come last, the region's first": {
			`"valuesPerRegion": [{"name": "eu", "patch": [{"op": "add", "path": "/list/-", "value": 3}]}],
			 "valuesPerCluster": [{"name": "west", "values": {"list": [0]},
			   "patch": [{"op": "test", "path": "/list/1", "value": 3}, {"op": "remove", "path": "/image/pull"},
			     {"op": "add", "path": "/x", "value": null}]}]`,
			`{"image": {"tag": "1"}, "list": [0, 3], "n": 9007199254740993, "x": null}`,
		},
		"characters of HTML come through a patch": {
			`"valuesPerCluster": [{"name": "west", "patch": [{"op": "replace", "path": "/image", "value": "<&>"}]}]`,
			`{"image": "<&>", "list": [1, 2], "n": 9007199254740993}`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			text := "{" + common + ", " + tc.layers + "}"
			layers := layersOf(t, text)
			got, err := layers.At(values.Place{Cluster: "west", Region: "eu"})
			if err != nil {
				t.Fatal(err)
			}
			var want shipper.ChartValues
			if err := json.Unmarshal([]byte(tc.want), (*map[string]any)(&want)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, *got); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(layersOf(t, text), layers); diff != "" {
				t.Errorf("merging changed what was merged (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlacesThatAreTheSameToTheValues(t *testing.T) {
	layers := layersOf(t, `{"valuesPerRegion": [{"name": "eu"}], "valuesPerCluster": [{"name": "west"}]}`)
	for place, want := range map[values.Place]values.Place{
		{Cluster: "west", Region: "eu"}: {Cluster: "west", Region: "eu"},
		{Cluster: "mid", Region: "eu"}:  {Region: "eu"},
		{Cluster: "east", Region: "us"}: {},
	} {
		if got := layers.Distinct(place); got != want {
			t.Errorf("%v is %v, want %v", place, got, want)
		}
	}
	if layersOf(t, `{"values": {}}`).Differ() || !layers.Differ() {
		t.Error("Differ is wrong")
	}
}

// doubling is a patch that makes a map twice as large n times.
func doubling(n int) string {
	var operations []string
	for i := range n {
		operations = append(operations, fmt.Sprintf(`{"op": "copy", "from": "/m", "path": "/m/%d"}`, i))
	}
	return strings.Join(operations, ", ")
}

func TestPatchesThatCannotBeApplied(t *testing.T) {
	const secret = "s3cret"
	for sentence, tc := range map[string]struct {
		patch     string
		operation int
		message   string
	}{
		"a place that is not there": {
			`[{"op": "add", "path": "/a", "value": 1}, {"op": "replace", "path": "/b/c", "value": "s3cret"}]`, 1,
			"(replace /b/c) does not apply: the merged values have no such place; the chart's own defaults are not seen",
		},
		"a test that fails": {
			`[{"op": "test", "path": "/password", "value": "other"}]`, 0,
			"(test /password) fails: the merged values have something else there",
		},
		"a copy from nowhere": {
			`[{"op": "copy", "from": "/x", "path": "/y"}]`, 0,
			"(copy from /x to /y) does not apply: the merged values have no such place",
		},
		"values that are no map any more": {`[{"op": "replace", "path": "", "value": [1]}]`, -1, "makes the values something else than a map"},
		"values that are null":            {`[{"op": "replace", "path": "", "value": null}]`, -1, ""},
		"copies that double and double": {
			`[` + doubling(30) + `]`, -2, "",
		},
		"no operation":            {`[{"op": "increase", "path": "/n"}]`, 0, "must have an op: add, remove, replace, move, copy or test"},
		"an add without a value":  {`[{"op": "add", "path": "/n"}]`, 0, "must have value, as every add"},
		"a path of another kind":  {`[{"op": "remove", "path": "a.b"}]`, 0, `has the path "a.b": paths begin with /, as in /image/tag`},
		"a path that is a number": {`[{"op": "remove", "path": 1}]`, 0, "has the path that is no text"},
		"a misspelt field":        {`[{"op": "remove", "path": "/n", "vlaue": 1}]`, 0, `has a field "vlaue", which no operation has`},
	} {
		t.Run(sentence, func(t *testing.T) {
			layers := layersOf(t, fmt.Sprintf(`{"values": {"password": %q, "n": 1, "m": {"big": %q}},
				"valuesPerRegion": [{"name": "eu"}], "valuesPerCluster": [{"name": "other"}, {"name": "west", "patch": %s}]}`,
				secret, strings.Repeat("x", 1000), tc.patch))
			_, err := layers.At(values.Place{Cluster: "west", Region: "eu"})
			var known *chart.Error
			var broken *values.PatchError
			if !errors.As(err, &known) || !errors.As(err, &broken) {
				t.Fatalf("got %v", err)
			}
			if known.Retry || known.Reason != shipper.ChartError || strings.Contains(err.Error(), secret) {
				t.Errorf("got %+v", known)
			}
			if !broken.PerCluster || broken.Entry != 1 || (tc.operation != -2 && broken.Operation != tc.operation) {
				t.Errorf("got %+v", broken)
			}
			if tc.message != "" && broken.Message != tc.message {
				t.Errorf("got %q, want %q", broken.Message, tc.message)
			}
			if !strings.Contains(err.Error(), `the patch of cluster "west"`) {
				t.Errorf("%v does not say whose patch it is", err)
			}
		})
	}
}
