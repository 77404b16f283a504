// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// schemaOf is the schema in a file with a CRD.
func schemaOf(t *testing.T, file string) *apiextensions.JSONSchemaProps {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(raw, &definition); err != nil {
		t.Fatal(err)
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		definition.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		t.Fatal(err)
	}
	return &props
}

// schemaErrors are what the API server finds wrong in a new object by the CRD of its kind, sorted.
func schemaErrors(t *testing.T, crd, object string) []string {
	t.Helper()
	return updateErrors(t, crd, object, "")
}

// updateErrors are schemaErrors of an update; before is the old object, empty for none.
func updateErrors(t *testing.T, crd, object, before string) []string {
	t.Helper()
	props := schemaOf(t, "../../../manifests/crd/shipper.booking.com_"+crd+".yaml")
	structural, err := schema.NewStructural(props)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		t.Fatal(err)
	}
	var content, old map[string]any
	if err := errors.Join(utilyaml.Unmarshal([]byte(object), &content), utilyaml.Unmarshal([]byte(before), &old)); err != nil {
		t.Fatal(err)
	}
	errs := validation.ValidateCustomResource(nil, content, validator)
	cel := schemacel.NewValidator(structural, true, celconfig.PerCallLimit)
	var more field.ErrorList
	if old == nil {
		more, _ = cel.Validate(t.Context(), nil, structural, content, nil, celconfig.RuntimeCELCostBudget)
	} else {
		more, _ = cel.Validate(t.Context(), nil, structural, content, old, celconfig.RuntimeCELCostBudget)
	}
	var out []string
	for _, err := range append(errs, more...) {
		out = append(out, err.Error())
	}
	slices.Sort(out)
	return out
}

// expect compares errors with those that are wanted.
func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("errors:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSelectorsInTheSchema(t *testing.T) {
	const (
		at       = "spec.template.resources.select[0]"
		nameIt   = at + ".labelSelector: Required value: name one, or write labelSelector: {} for all: "
		ofItself = "Namespaces and Secrets are not selected by their kind alone"
	)
	short := func(name string) string {
		return at + "." + name + `: Invalid value: "": ` + at + "." + name + " in body should be at least 1 chars long"
	}
	for selector, want := range map[string][]string{
		`{kind: ConfigMap}`:                               nil,
		`{kind: ConfigMap, labelSelector: {}}`:            nil,
		`{kind: Secret, labelSelector: {}}`:               nil,
		`{kind: Namespace, name: work}`:                   nil,
		`{group: example.com, kind: Secret}`:              nil,
		`{kind: Namespace}`:                               {nameIt + ofItself},
		`{group: "", kind: Secret}`:                       {nameIt + ofItself},
		`{kind: ConfigMap, name: web, namespace: ""}`:     {short("namespace")},
		`{kind: ConfigMap, name: web, version: ""}`:       {short("version")},
		`{kind: ConfigMap, name: web, labelSelector: {}}`: {at + ".labelSelector: Forbidden: give a name or a labelSelector, not both"},
		`{kind: Secret, name: ""}`: {short("name"), at + `.name: Invalid value: "": leave an empty name out: ` +
			"labelSelector: {} selects all objects of the kind"},
	} {
		t.Run(selector, func(t *testing.T) {
			expect(t, schemaErrors(t, "applications", `{spec: {template: {resources: {select: [`+selector+`]},
				clusterRequirements: {regions: [{name: local}]}, strategy: {}}}}`), want...)
		})
	}
}

func TestAChartHasStepsAndResourcesHaveNone(t *testing.T) {
	const (
		chart     = "chart: {name: nginx, repoUrl: https://charts.example.com}, "
		resources = "resources: {select: [{kind: ConfigMap}]}, "
		steps     = "strategy: {steps: [{name: a, capacity: {contender: 100, incumbent: 0}, traffic: {contender: 1, incumbent: 0}}]}"
		none      = "strategy: {}"
		oneOfTwo  = "name a chart or resources: exactly one of the two"
	)
	for template, want := range map[string][]string{
		chart + steps:             nil,
		resources + none:          nil,
		chart + resources + steps: {"resources: Forbidden: " + oneOfTwo},
		chart + resources + none:  {"resources: Forbidden: " + oneOfTwo},
		steps:                     {"chart: Required value: " + oneOfTwo},
		none:                      {"chart: Required value: " + oneOfTwo},
		chart + none:              {"strategy.steps: Required value: a chart needs steps"},
		resources + steps: {"strategy.steps: Forbidden: resources have no capacity and traffic to step through: " +
			"rolling says how many clusters change at the same time"},
	} {
		t.Run(template, func(t *testing.T) {
			environment := "{clusterRequirements: {regions: [{name: local}]}, " + template + "}"
			for crd, path := range map[string]string{"applications": "template", "releases": "environment"} {
				var errs []string
				for _, message := range want {
					errs = append(errs, "spec."+path+"."+message)
				}
				more := ""
				if crd == "releases" {
					more = ", targetStep: 0"
				}
				expect(t, schemaErrors(t, crd, "spec: {"+path+": "+environment+more+"}"), errs...)
			}
		})
	}
}

// Server-side apply and GitOps tools compare the entries of such lists by these fields, as they are in the user's file.
func TestNoKeyOfAListHasADefault(t *testing.T) {
	files, err := filepath.Glob("../../../manifests/crd/shipper.*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no CRDs: %v", err)
	}
	for _, file := range files {
		structural, err := schema.NewStructural(schemaOf(t, file))
		if err != nil {
			t.Fatal(err)
		}
		lists := 0
		(&schema.Visitor{Structural: func(s *schema.Structural) bool {
			for _, key := range s.XListMapKeys {
				lists++
				if s.Items.Properties[key].Default.Object != nil {
					t.Errorf("%s: a list of entries with the key %s, which has a default: %s", filepath.Base(file), key, s.Description)
				}
			}
			return false
		}}).Visit(structural)
		if lists == 0 && strings.Contains(file, "applications") {
			t.Error("no list of Applications was visited")
		}
	}
}

func TestContentIsImmutable(t *testing.T) {
	snapshot := func(data string) string {
		return "spec: {digest: " + strings.Repeat("a", 64) + ", objects: 1, bytes: 1, parts: 1, part: 1, data: " + data + "}"
	}
	expect(t, updateErrors(t, "resourcesnapshots", snapshot("a"), snapshot("a")))
	got := updateErrors(t, "resourcesnapshots", snapshot("b"), snapshot("a"))
	if len(got) != 1 || !strings.HasSuffix(got[0], "immutable: keep it, it may be the only copy of a Release's content") {
		t.Errorf("a change is refused with %v", got)
	}
}

// TestTheNamingOfAReleaseNeverChanges, also while no webhook is called.
func TestTheNamingOfAReleaseNeverChanges(t *testing.T) {
	release := func(chart string) string {
		return `{spec: {targetStep: 0, environment: {` + chart + `clusterRequirements: {regions: [{name: local}]}, strategy: {steps: [` +
			`{name: full on, capacity: {contender: 100, incumbent: 0}, traffic: {contender: 100, incumbent: 0}}]}}}}`
	}
	const chart, refused = "chart: {name: nginx, version: 0.0.1, repoUrl: http://charts}, ", "spec.environment.chart.naming: Forbidden: " +
		"the Release environment must not be changed; edit the Application instead"
	by := func(naming string) string { return strings.Replace(chart, "}", ", naming: "+naming+"}", 1) }
	for _, tc := range []struct {
		was, is string
		want    []string
	}{
		{chart, chart, nil},
		{by("Application"), by("Application"), nil},
		{chart, by("Application"), []string{refused}},
		{by("Application"), chart, []string{refused}},
		{by("Application"), by("Release"), []string{refused}},
	} {
		expect(t, updateErrors(t, "releases", release(tc.is), release(tc.was)), tc.want...)
	}
}
