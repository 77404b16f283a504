// SPDX-License-Identifier: Apache-2.0

package file

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// parsed is a YAML document.
func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// K1, K2, K3, K4, K20: the examples of the specification, without its mistakes (i) and (ii).
func TestTheSpecificationsFiles(t *testing.T) {
	for name, notes := range map[string][]string{
		"0.1": {"each stage follows the one before it in the file, as 0.1.x did without saying so"},
		"0.2": {"hardening.artifact-delivery: event dev.artifact-delivery.finished is of a stage that this file does not have (hardening): " +
			"nothing triggers it"},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile("testdata/" + name + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			object := parsed(t, string(raw))
			if !Is(object) {
				t.Error("it is not taken for a shipyard")
			}
			got, err := Read(object)
			if err != nil {
				t.Fatal(err)
			}
			text, err := yaml.Marshal(got.Spec)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile("testdata/" + name + ".golden.yaml")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(text)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(notes, got.Notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBareEventsAreMended(t *testing.T) {
	got, err := Read(parsed(t, `
apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shop}
spec: {stages: [{name: a, sequences: [{name: d, tasks: [{name: deployment}], triggeredOn: [a.x.finished, {event: problem.open}]}]}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a.d: triggeredOn[0] was the text a.x.finished, and is an event now"}, got.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	on := got.Spec.Stages[0].Sequences[0].TriggeredOn
	if got.Name != "shop" || on[0].Event != "a.x.finished" || on[1].Event != "problem.open" {
		t.Errorf("got %s, %v", got.Name, on)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"{version: 0.3.0, kind: Shipyard, spec: {stages: [{name: a}]}}": "version 0.3.0 is not known: 0.1.x and 0.2.x are",
		"{kind: Shipyard, spec: {stages: [{name: a}]}}":                 "version: write version: 0.2.0, or apiVersion: spec.keptn.sh/0.2.0",
		"{version: 0.2.0, kind: Shipyard, spec: {stages: []}}":          "spec.stages: a shipyard has at least one stage",
		"{stages: []}": "stages: a shipyard has at least one stage",
		"{version: 0.2.0, kind: Shipyard, spec: {stages: [{name: a, sequence: []}]}}": `reading the shipyard: json: unknown field "sequence"`,
		"{stages: [{name: a, deployment_strategy: canary}]}": `stages[0].deployment_strategy: "canary" is ` +
			`not direct or blue_green_service`,
		"{stages: [{name: a, remediation_strategy: manual}]}": `stages[0].remediation_strategy: "manual" is ` +
			`not automated`,
		"{version: 0.2.0, kind: Shipyard, spec: {stages: [{name: a, sequences: [{name: b, triggeredOn: [{events: c}]}]}]}}": `reading ` +
			`the shipyard: ` +
			`reading the shipyard: json: unknown field "events"`,
	} {
		if _, err := Read(parsed(t, text)); err == nil || err.Error() != want {
			t.Errorf("%s:\n%v, want\n%s", text, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"0.1", "0.2"} {
		raw, err := os.ReadFile("testdata/" + name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(raw))
	}
	f.Fuzz(func(t *testing.T, text string) {
		var object map[string]any
		if yaml.Unmarshal([]byte(text), &object) != nil {
			t.Skip()
		}
		if got, err := Read(object); err == nil && len(got.Spec.Stages) == 0 {
			t.Error("a shipyard without stages")
		}
	})
}
