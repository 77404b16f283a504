// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// K2, KS5, KS19, KS22: names are unique and have no dots, because they make the types of events.
func TestNamesInAShipyard(t *testing.T) {
	const shipyard = "{apiVersion: shipper.booking.com/v1alpha1, kind: Shipyard, spec: {stages: "
	sequence := func(name string) string {
		return "[{name: a, sequences: [{name: " + name + ", tasks: [{name: test}]}]}]"
	}
	for stages, want := range map[string]string{
		"[{name: a}, {name: b}]": "",
		"[]":                     "spec.stages in body should have at least 1 items",
		"[{name: a.b}]":          "spec.stages[0].name in body should match",
		"[{name: Dev}]":          "spec.stages[0].name in body should match",
		"[{name: status}]":       "is the name of a subresource of Kubernetes",
		sequence("Delivery_1"):   "",
		sequence("a.b"):          "spec.stages[0].sequences[0].name in body should match",
		"[{name: a, sequences: [{name: b, tasks: []}]}]":            "spec.stages[0].sequences[0].tasks in body should have at least 1 items",
		"[{name: a, sequences: [{name: b, tasks: [{name: a.b}]}]}]": "spec.stages[0].sequences[0].tasks[0].name in body should match",
		"[{name: a, sequences: [{name: b, tasks: [{name: c}], triggeredOn: [dev.b.finished]}]}]": "triggeredOn[0]: Invalid value: \"string\": " +
			"spec.stages[0].sequences[0].triggeredOn[0] in body must be of type object",
	} {
		got := schemaErrors(t, "shipyards", shipyard+stages+"}}")
		switch text := strings.Join(got, "\n"); {
		case want == "" && text != "", !strings.Contains(text, want):
			t.Errorf("%s: %q, want %q", stages, text, want)
		}
	}
	structural, err := schema.NewStructural(schemaOf(t, "../../../manifests/crd/shipper.booking.com_shipyards.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for stages, want := range map[string]string{
		"[{name: a}, {name: a}]": `spec.stages[1]: Duplicate value: {"name":"a"}`,
		"[{name: a, sequences: [{name: b, tasks: [{name: c}]}, {name: b, tasks: [{name: c}]}]}]": `spec.stages[0].sequences[1]: Duplicate value: ` +
			`{"name":"b"}`,
		"[{name: a, sequences: [{name: b, tasks: [{name: c}, {name: c}]}]}]": "",
	} {
		var content map[string]any
		if err := utilyaml.Unmarshal([]byte(shipyard+stages+"}}"), &content); err != nil {
			t.Fatal(err)
		}
		got := ""
		if errs := listtype.ValidateListSetsAndMaps(nil, structural, content); len(errs) > 0 {
			got = errs.ToAggregate().Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", stages, got, want)
		}
	}
}
