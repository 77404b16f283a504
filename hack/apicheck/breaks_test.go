// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const before = `
metadata: {name: apps.example.com}
spec:
  scope: Namespaced
  names: {kind: App, plural: apps, shortNames: [a]}
  versions:
  - name: v1
    served: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          name: {type: string, maxLength: 63}
          mode: {type: string, enum: [Auto, Manual]}
          count: {type: integer, minimum: 0}
          steps: {type: array, maxItems: 10, items: {type: object, properties: {weight: {type: integer}}}}
          labels: {type: object, additionalProperties: {type: string}}
`

func TestOnlyWhatBreaksUsersIsReported(t *testing.T) {
	for _, c := range []struct {
		name, from, to string
		want           []string
	}{
		{name: "nothing changed"},
		{name: "a new field", from: "name: {type: string", to: "more: {type: string}\n          name: {type: string"},
		{name: "a new value", from: "[Auto, Manual]", to: "[Auto, Manual, None]"},
		{name: "a wider bound", from: "maxLength: 63", to: "maxLength: 64"},
		{name: "a lower minimum", from: "minimum: 0", to: "minimum: -1"},
		{name: "a field is gone", from: "{weight: {type: integer}}", to: "{}", want: []string{"App.steps[]: field weight is gone"}},
		{name: "a value is gone", from: "[Auto, Manual]", to: "[Auto]", want: []string{`App.mode: value "Manual" is gone`}},
		{name: "a tighter bound", from: "maxItems: 10", to: "maxItems: 9", want: []string{"App.steps: maxItems 10 became 9"}},
		{name: "a new bound", from: "{type: integer, minimum: 0}", to: "{type: integer, minimum: 0, maximum: 5}",
			want: []string{"App.count: maximum became 5"}},
		{name: "a higher minimum", from: "minimum: 0", to: "minimum: 1", want: []string{"App.count: minimum 0 became 1"}},
		{name: "a new pattern", from: "maxLength: 63", to: "maxLength: 63, pattern: ^a", want: []string{`App.name: pattern "" became "^a"`}},
		{name: "a new list of values", from: "maxLength: 63", to: "maxLength: 63, enum: [a]",
			want: []string{"App.name: takes only 1 values now"}},
		{name: "a new rule", from: "maxLength: 63", to: "maxLength: 63, x-kubernetes-validations: [{rule: self != ''}]",
			want: []string{`App.name: new rule "self != ''"`}},
		{name: "another default", from: "maxLength: 63", to: "maxLength: 63, default: a", want: []string{`App.name: default null became "a"`}},
		{name: "another type", from: "additionalProperties: {type: string}", to: "additionalProperties: {type: integer}",
			want: []string{"App.labels{}: type string became integer"}},
		{name: "a required field", from: "type: object\n        properties", to: "type: object\n        required: [name]\n        properties",
			want: []string{"App: name became required"}},
		{name: "a short name is gone", from: "shortNames: [a]", to: "shortNames: []", want: []string{"apps.example.com: short name a is gone"}},
		{name: "a version is not served", from: "served: true", to: "served: false",
			want: []string{"apps.example.com: version v1 is no longer served"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			after := strings.Replace(before, c.from, c.to, 1)
			if c.from != "" && after == before {
				t.Fatalf("%q is not in the schema", c.from)
			}
			got, err := crdBreaks([]byte(before), []byte(after))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestTheCommandsOfTheDocsAreRead(t *testing.T) {
	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	if got := flags(string(text)); len(got) < 50 || !got["shipperctl rollout status"]["--wait"] {
		t.Errorf("%d commands; of rollout status %v", len(got), got["shipperctl rollout status"])
	}
}

func TestCommandsAndFlagsThatAreGoneAreReported(t *testing.T) {
	old := "## shipperctl a\n| `--all` | x |\n| `--now` | x |\n## shipperctl b\ntext `--none`\n"
	got := flagBreaks(old, "## shipperctl a\n| `--all` | x |\n")
	slices.Sort(got)
	if diff := cmp.Diff([]string{"shipperctl a: --now is gone", "shipperctl b: is gone"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
