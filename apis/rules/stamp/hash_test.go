// SPDX-License-Identifier: Apache-2.0

package stamp_test

import (
	"encoding/json"
	"math"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// quickStart is the Application of the documentation's first page.
func quickStart() *shipper.Application {
	app := &shipper.Application{}
	app.Name, app.Namespace, app.UID = "super-server", "default", "app-uid"
	app.Spec.Template = shipper.ReleaseEnvironment{
		Chart: shipper.Chart{
			Name: "nginx", Version: "0.0.1",
			RepoURL: "https://raw.githubusercontent.com/bookingcom/shipper/master/test/e2e/testdata",
		},
		Values: &shipper.ChartValues{"replicaCount": int64(3)},
		ClusterRequirements: shipper.ClusterRequirements{
			Regions: []shipper.RegionRequirement{{Name: "local"}},
		},
		Strategy: &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{
			{
				Name:     "staging",
				Capacity: shipper.RolloutStrategyStepValue{Incumbent: 100, Contender: 1},
				Traffic:  shipper.RolloutStrategyStepValue{Incumbent: 100},
			},
			{
				Name:     "full on",
				Capacity: shipper.RolloutStrategyStepValue{Contender: 100},
				Traffic:  shipper.RolloutStrategyStepValue{Contender: 100},
			},
		}},
	}
	return app
}

func values(v shipper.ChartValues) shipper.ReleaseEnvironment {
	return shipper.ReleaseEnvironment{Values: &v}
}

func mustHash(t *testing.T, env shipper.ReleaseEnvironment) string {
	t.Helper()
	hash, err := stamp.Hash(env)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func TestHashIsThatOfTheOriginal(t *testing.T) {
	seven := shipper.ReleaseEnvironment{Chart: shipper.Chart{Name: "seven-28"}}
	cases := map[string]struct {
		env  shipper.ReleaseEnvironment
		want string
	}{
		"nothing at all":                           {want: "964c04d2"},
		"the quick start of the documentation":     {env: quickStart().Spec.Template, want: "6f19aa85"},
		"seven digits are not padded":              {env: seven, want: "ebad320"},
		"empty values are not absent values":       {env: values(shipper.ChartValues{}), want: "a729c823"},
		"values without a map are as absent ones":  {env: values(nil), want: "964c04d2"},
		"characters of HTML are escaped as always": {env: values(shipper.ChartValues{"a": "<&>"}), want: "e3671ab5"},
		"lists of places that are empty are absent": {
			env:  shipper.ReleaseEnvironment{ValuesPerRegion: []shipper.ValuesFor{}, ValuesPerCluster: []shipper.ValuesFor{}},
			want: "964c04d2",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := mustHash(t, tc.env); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestHashDoesNotDependOnTheDecoder(t *testing.T) {
	cases := map[string]struct{ a, b any }{
		"an integer and a float":                {int64(3), 3.0},
		"zero and minus zero":                   {int64(0), math.Copysign(0, -1)},
		"an integer beyond 2^53":                {int64(9007199254740993), float64(9007199254740993)},
		"the largest integer":                   {int64(math.MaxInt64), float64(math.MaxInt64)},
		"beyond every int64":                    {uint64(math.MaxUint64), float64(math.MaxUint64)},
		"other widths of integers":              {int32(7), int(7)},
		"floats of both widths":                 {float32(0.5), 0.5},
		"numbers kept as text":                  {json.Number("3.0"), int64(3)},
		"integers kept as text":                 {json.Number("12"), 12.0},
		"lists of numbers":                      {[]any{int64(1), 2.0}, []any{1.0, int64(2)}},
		"maps of lists of numbers":              {map[string]any{"x": []any{int64(1)}}, map[string]any{"x": []any{1.0}}},
		"a number that only looks like a float": {1e17, int64(100000000000000000)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, b := values(shipper.ChartValues{"v": tc.a}), values(shipper.ChartValues{"v": tc.b})
			if mustHash(t, a) != mustHash(t, b) {
				t.Errorf("%v and %v hash differently", tc.a, tc.b)
			}
			if !stamp.SameEnvironment(&a, &b) || !stamp.SameEnvironment(&b, &a) {
				t.Errorf("%v and %v are not the same", tc.a, tc.b)
			}
		})
	}
}

func TestHashSeesEveryPlace(t *testing.T) {
	of := func(v any, patched any) []shipper.ValuesFor {
		return []shipper.ValuesFor{{
			Name: "west", Values: &shipper.ChartValues{"v": v},
			Patch: []shipper.PatchOperation{{"op": "add", "path": "/w", "value": patched}},
		}}
	}
	base := shipper.ReleaseEnvironment{}
	region := shipper.ReleaseEnvironment{ValuesPerRegion: of(int64(3), int64(4))}
	cluster := shipper.ReleaseEnvironment{ValuesPerCluster: of(int64(3), int64(4))}
	other := shipper.ReleaseEnvironment{ValuesPerCluster: of(int64(4), int64(4))}
	patched := shipper.ReleaseEnvironment{ValuesPerCluster: of(int64(3), int64(5))}
	all := []shipper.ReleaseEnvironment{base, region, cluster, other, patched}
	for i := range all {
		for j := range all {
			if same := stamp.SameEnvironment(&all[i], &all[j]); same != (i == j) {
				t.Errorf("environments %d and %d: same is %t", i, j, same)
			}
			if (mustHash(t, all[i]) == mustHash(t, all[j])) != (i == j) {
				t.Errorf("environments %d and %d: hashes %s and %s", i, j, mustHash(t, all[i]), mustHash(t, all[j]))
			}
		}
	}
	floats := shipper.ReleaseEnvironment{ValuesPerCluster: of(3.0, 4.0)}
	if mustHash(t, floats) != mustHash(t, cluster) || !stamp.SameEnvironment(&floats, &cluster) {
		t.Error("how a decoder holds numbers makes another environment")
	}
	if _, ok := floats.ValuesPerCluster[0].Patch[0]["value"].(float64); !ok {
		t.Error("hashing changed the patch")
	}
}

func TestHashOutlivesTheWire(t *testing.T) {
	for _, text := range []string{
		`{"v":3.0}`, `{"v":1e21}`, `{"v":1e17}`, `{"v":-0}`, `{"v":9007199254740993}`, `{"v":18446744073709551615}`,
		`{"v":0.1}`, `{"v":1.5e300}`, `{"v":[null,true,"x",{"y":7}]}`,
	} {
		var ours, plain shipper.ChartValues
		if err := kjson.Unmarshal([]byte(text), (*map[string]any)(&ours)); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(text), &plain); err != nil {
			t.Fatal(err)
		}
		want := mustHash(t, values(ours))
		if got := mustHash(t, values(plain)); got != want {
			t.Errorf("%s: hash is %s by one decoder and %s by another", text, want, got)
		}
		stored, err := json.Marshal(runtime.DeepCopyJSONValue(map[string]any(ours)))
		if err != nil {
			t.Fatal(err)
		}
		var read shipper.ChartValues
		if err := kjson.Unmarshal(stored, (*map[string]any)(&read)); err != nil {
			t.Fatal(err)
		}
		if got := mustHash(t, values(read)); got != want {
			t.Errorf("%s: hash is %s before it was stored and %s after", text, want, got)
		}
	}
}

func TestHashLeavesTheEnvironmentAlone(t *testing.T) {
	env := values(shipper.ChartValues{"v": 3.0})
	mustHash(t, env)
	if _, ok := (*env.Values)["v"].(float64); !ok {
		t.Error("the values were changed")
	}
}

func TestHashRefusesWhatIsNotJSON(t *testing.T) {
	if hash, err := stamp.Hash(values(shipper.ChartValues{"v": math.NaN()})); err == nil {
		t.Errorf("got %s, want an error", hash)
	}
}

func TestSameEnvironmentComparesByValue(t *testing.T) {
	one, two := int32(1), int32(2)
	regions := func(replicas *int32) shipper.ReleaseEnvironment {
		r := []shipper.RegionRequirement{{Name: "local", Replicas: replicas}}
		return shipper.ReleaseEnvironment{ClusterRequirements: shipper.ClusterRequirements{Regions: r}}
	}
	chart := shipper.ReleaseEnvironment{Chart: shipper.Chart{Name: "a"}}
	noSteps := shipper.ReleaseEnvironment{Strategy: &shipper.RolloutStrategy{}}
	empty := shipper.ReleaseEnvironment{}
	emptyLists := shipper.ReleaseEnvironment{ClusterRequirements: shipper.ClusterRequirements{
		Regions: []shipper.RegionRequirement{}, Capabilities: []string{},
	}}
	cases := map[string]struct {
		a, b shipper.ReleaseEnvironment
		want bool
	}{
		"nothing and nothing":                 {empty, empty, true},
		"absent and empty values":             {empty, values(shipper.ChartValues{}), true},
		"absent and empty lists":              {empty, emptyLists, true},
		"other charts":                        {empty, chart, false},
		"no strategy and one without steps":   {empty, noSteps, false},
		"the same regions by another pointer": {regions(&one), regions(ptr(1)), true},
		"other numbers of clusters":           {regions(&one), regions(&two), false},
		"integers with the same float64":      {value(int64(1<<53 + 1)), value(int64(1 << 53)), false},
		"a number and its text":               {value(int64(3)), value("3"), false},
		"a text and a number":                 {value("3"), value(int64(3)), false},
		"null and absent inside values":       {value(nil), values(shipper.ChartValues{"w": nil}), false},
		"more keys":                           {value("x"), values(shipper.ChartValues{"v": "x", "w": "y"}), false},
		"null and empty inside values":        {value(nil), value(map[string]any{}), false},
		"a null map and an empty one inside":  {value(map[string]any(nil)), value(map[string]any{}), false},
		"a null list and an empty one inside": {value([]any(nil)), value([]any{}), false},
		"lists in another order":              {value([]any{"a", "b"}), value([]any{"b", "a"}), false},
		"a list and a map":                    {value([]any{}), value(map[string]any{}), false},
		"a map and a list":                    {value(map[string]any{}), value([]any{}), false},
		"maps of maps":                        {value(map[string]any{"a": true}), value(map[string]any{"a": true}), true},
		"maps of maps that differ":            {value(map[string]any{"a": true}), value(map[string]any{"a": false}), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := stamp.SameEnvironment(&tc.a, &tc.b); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
			if got := stamp.SameEnvironment(&tc.b, &tc.a); got != tc.want {
				t.Errorf("the other way round: got %t, want %t", got, tc.want)
			}
		})
	}
	if !stamp.SameEnvironment(nil, nil) || stamp.SameEnvironment(nil, &empty) || stamp.SameEnvironment(&empty, nil) {
		t.Error("no environment is the same as no environment only")
	}
}

func ptr(n int32) *int32 { return &n }

func value(v any) shipper.ReleaseEnvironment { return values(shipper.ChartValues{"v": v}) }
