// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/chart/render"
)

// looking is a chart that prints what a template makes of what it looks up.
func looking(t *testing.T, template string) *render.Chart {
	t.Helper()
	return sample(t, map[string]string{"templates/found.yaml": fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {name: found}
data: {found: '%s'}
`, template)})
}

func TestAChartLooksUpWhatIsInItsOwnNamespace(t *testing.T) {
	own := map[render.Query]map[string]any{
		{APIVersion: "v1", Kind: "Secret", Name: "password"}: {"data": map[string]any{"password": "kept", "next": "other"}},
		{APIVersion: "v1", Kind: "Secret", Name: "other"}:    {"data": map[string]any{"password": "two"}},
		{APIVersion: "v1", Kind: "Secret"}:                   {"items": []any{"a", "b"}},
	}
	tests := map[string]struct {
		template, want string
		asked          []string
	}{
		"nothing": {"{{ .Release.Name | trunc 0 }}-", "-", nil},
		"an object": {
			`{{ (lookup "v1" "Secret" .Release.Namespace "password").data.password }}`, "kept", []string{`Secret "password"`},
		},
		"all of a kind": {`{{ len (lookup "v1" "Secret" .Release.Namespace "").items }}`, "2", []string{"Secret objects"}},
		"one after another": {
			`{{ $p := lookup "v1" "Secret" .Release.Namespace "password" }}{{ with $p.data }}{{ ` +
				`(lookup "v1" "Secret" $.Release.Namespace .next).data.password }}{{ end }}`, "two", []string{`Secret "password"`, `Secret "other"`},
		},
		"one that is not there": {
			`{{ empty (lookup "v1" "Secret" .Release.Namespace "absent") }}`, "true", []string{`Secret "absent"`},
		},
		"one that a chart has to have": {
			`{{ required "no password" (dig "data" "password" "" (lookup "v1" "Secret" .Release.Namespace "password")) }}`, "kept",
			[]string{`Secret "password"`},
		},
		"a change of what was found": {
			`{{ $p := lookup "v1" "Secret" .Release.Namespace "password" }}{{ with $p.data }}{{ $_ := set . "password" "x" }}{{ end }}` +
				`{{ (lookup "v1" "Secret" .Release.Namespace "password").data.password }}`, "kept", []string{`Secret "password"`},
		},
		"another namespace":   {`{{ empty (lookup "v1" "Secret" "kube-system" "password") }}`, "true", nil},
		"all namespaces":      {`{{ empty (lookup "v1" "Secret" "" "") }}`, "true", nil},
		"without a namespace": {`{{ empty (lookup "v1" "Namespace" "" "kube-system") }}`, "true", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var asked []string
			find := func(_ context.Context, q render.Query) (map[string]any, error) {
				asked = append(asked, q.String())
				return own[q], nil
			}
			manifest, err := looking(t, tc.template).RenderIn(t.Context(), nil, target, find)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, o := range manifest.Objects {
				if o.GetName() == "found" {
					data, _ := o.Object["data"].(map[string]any)
					got, _ = data["found"].(string)
				}
			}
			if got != tc.want {
				t.Errorf("it prints %q, want %q", got, tc.want)
			}
			if diff := cmp.Diff(tc.asked, asked); diff != "" {
				t.Errorf("it asks for (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLookupsThatEndNowhere(t *testing.T) {
	always := func(_ context.Context, q render.Query) (map[string]any, error) {
		return map[string]any{"next": q.Name + "x"}, nil
	}
	deep := `{{ define "next" }}{{ $o := lookup "v1" "Secret" .ns .name }}` +
		`{{ if $o.next }}{{ include "next" (dict "ns" .ns "name" $o.next) }}{{ end }}{{ end }}` +
		`{{ include "next" (dict "ns" .Release.Namespace "name" "x") }}`
	many := `{{ range until 101 }}{{ $_ := lookup "v1" "Secret" $.Release.Namespace (print .) }}{{ end }}`
	fails := func(context.Context, render.Query) (map[string]any, error) {
		return nil, errors.New("the cluster is away")
	}
	keys := map[string]any{}
	for n := range 2000 {
		keys[fmt.Sprint(n)] = ""
	}
	again := `{{ range until 2000 }}{{ $_ := lookup "v1" "ConfigMap" $.Release.Namespace "keys" }}{{ end }}`
	hasKeys := func(context.Context, render.Query) (map[string]any, error) { return keys, nil }
	large := `{{ range until 20 }}{{ $_ := lookup "v1" "Secret" $.Release.Namespace (print .) }}{{ end }}`
	mebibyte := func(context.Context, render.Query) (map[string]any, error) {
		return map[string]any{"data": strings.Repeat("x", 1<<20)}, nil
	}
	tests := map[string]struct {
		template string
		find     func(context.Context, render.Query) (map[string]any, error)
		want     failure
	}{
		"one after another without end": {deep, always, failure{
			"ChartError", `chart "sample" 1.2.3: what it looks up depends on what it looked up before, more than 5 times`, false}},
		"too many": {many, always, failure{"ChartError", `chart "sample" 1.2.3: it looks up more than 100 objects`, false}},
		"copies of many keys": {again, hasKeys, failure{"ChartError",
			`chart "sample" 1.2.3: it does not render: sample/templates/found.yaml:5:40: out of bounds: the chart's templates do too much`, false}},
		"too much together": {large, mebibyte, failure{"ChartError", `chart "sample" 1.2.3: what it looks up takes more than 16 MiB`, false}},
		"the cluster does not answer": {`{{ lookup "v1" "Secret" .Release.Namespace "x" }}`, fails, failure{
			"ChartError", `chart "sample" 1.2.3 looks up Secret "x": the cluster is away`, true}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := looking(t, tc.template).RenderIn(t.Context(), nil, target, tc.find)
			if diff := cmp.Diff(tc.want, read(t, err)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestLookupsAreNotRemembered: what was found in one cluster at one time is not that of another.
func TestLookupsAreNotRemembered(t *testing.T) {
	c := looking(t, `{{ (lookup "v1" "Secret" .Release.Namespace "password").password }}`)
	for _, password := range []string{"one", "two"} {
		manifest, err := c.RenderIn(t.Context(), nil, target, func(context.Context, render.Query) (map[string]any, error) {
			return map[string]any{"password": password}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range manifest.Objects {
			if data, ok := o.Object["data"].(map[string]any); ok {
				got = append(got, fmt.Sprint(data["found"]))
			}
		}
		if diff := cmp.Diff([]string{password}, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// TestNothingDependsOnNoLookup: at admission lookups find nothing, and a rollout counts the Pods by what a chart renders to there.
func TestNothingDependsOnNoLookup(t *testing.T) {
	const why = `chart "sample" 1.2.3: it renders to nothing or to something depending on what it looks up; ` +
		`it must have exactly one Deployment in every cluster, or nothing by its values alone`
	const own = `(lookup "v1" "ConfigMap" .Release.Namespace "switch")`
	there := map[string]any{"data": map[string]any{}}
	for sentence, tc := range map[string]struct {
		condition string
		found     map[string]any
		want      string
	}{
		"something once it is there, and it is":     {own, there, why},
		"something once it is there, and it is not": {own, nil, ""},
		"nothing once it is there, and it is":       {"not " + own, there, why},
		"nothing once it is there, and it is not":   {"not " + own, nil, ""},
		"something in any case":                     {"or true " + own, there, ""},
		"nothing in any case":                       {"and " + own + " false", there, ""},
	} {
		_, err := switched(t, tc.condition, nil).RenderIn(t.Context(), nil, target, func(context.Context, render.Query) (map[string]any, error) {
			return tc.found, nil
		})
		if got := fmt.Sprint(err); err == nil && tc.want != "" || err != nil && got != tc.want {
			t.Errorf("%s: %v, want %q", sentence, err, tc.want)
		}
	}
}
