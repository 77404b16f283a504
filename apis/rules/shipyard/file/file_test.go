// SPDX-License-Identifier: Apache-2.0

package file

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	rules "shipper.dev/shipper/apis/rules/shipyard"
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
	for name, notes := range map[string][]Note{
		"0.1": {{"stages", "each stage follows the one before it in the file, as 0.1.x did without saying so"}},
		"0.2": {{
			"spec.stages[0].sequences[0].triggeredOn[0]", "event dev.artifact-delivery.finished is of a stage that this file does not have " +
				"(hardening): nothing triggers it",
		}},
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
	want := []Note{{"spec.stages[0].sequences[0].triggeredOn[0]", "was the text a.x.finished, and is an event now"}}
	if diff := cmp.Diff(want, got.Notes); diff != "" {
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
		"{version: 0.2.0, kind: Shipyard, spec: [a]}":                   "spec.stages: a shipyard has at least one stage",
		"{version: 0.2.0, kind: Shipyard, spec: {stages: [a, null]}}":   "spec.stages: a shipyard has at least one stage",
		"{stages: []}": "stages: a shipyard has at least one stage",
	} {
		if _, err := Read(parsed(t, text)); err == nil || err.Error() != want {
			t.Errorf("%s:\n%v, want\n%s", text, err, want)
		}
	}
}

// stage is a file of 0.2 with one stage.
func stage(text string) string {
	return "{version: 0.2.2, kind: Shipyard, spec: {stages: [" + text + "]}}"
}

// delivering is a file with one sequence.
func delivering(text string) string {
	return stage("{name: dev, sequences: [{name: delivery, " + text + "}]}")
}

func TestWhatAShipyardCannotHaveIsNotedAndTheRestIsRead(t *testing.T) {
	for sentence, c := range map[string]struct {
		in, want string // the stages as JSON
		notes    []Note
	}{
		"unknown keys": {
			"{version: 0.2.2, kind: Shipyard, description: a, metadata: {name: shop, labels: {}}, spec: {stages: [{name: dev, titel: b, " +
				"sequence: [], sequences: [{name: delivery, tasks: [{name: test, propertis: {a: b}}]}]}]}}",
			`[{"name":"dev","sequences":[{"name":"delivery","tasks":[{"name":"test"}]}]}]`,
			[]Note{
				{"description", "is no key of a shipyard, and is left out: keep it in a comment or an annotation of the Shipyard"},
				{"metadata.labels", "is no key of a shipyard, and is left out: keep it in a comment or an annotation of the Shipyard"},
				{"spec.stages[0].sequence", `is no key of a shipyard, and is left out; did you mean "sequences"?`},
				{"spec.stages[0].titel", "is no key of a shipyard, and is left out: keep it in a comment or an annotation of the Shipyard"},
				{"spec.stages[0].sequences[0].tasks[0].propertis", `is no key of a shipyard, and is left out; did you mean "properties"?`},
			},
		},
		"keys of 0.1 in a file of 0.2": {
			stage("{name: quality-gate, test_strategy: performance}"), `[{"name":"quality-gate"}]`,
			[]Note{{"spec.stages[0].test_strategy", "is a key of shipyards of 0.1, which has no effect in 0.2, and is left out: add the task " +
				"test to a sequence if it is meant"}},
		},
		"sequences in a file with a version of 0.1": {
			"{apiVersion: 0.1.0, kind: Shipyard, spec: {stages: [{name: dev, sequences: [{name: d, tasks: [{name: test}]}]}]}}",
			`[{"name":"dev","sequences":[{"name":"d","tasks":[{"name":"test"}]}]}]`, nil,
		},
		"unknown strategies of 0.1": {
			"{stages: [{name: dev, deployment_strategy: canary, remediation_strategy: manual, approval_strategy: {pass: auto}}]}",
			`[{"name":"dev","sequences":[{"name":"artifact-delivery","tasks":[{"name":"approval"},{"name":"deployment","properties":` +
				`{"deploymentstrategy":"user_managed"}},{"name":"release"}]}]}]`,
			[]Note{
				{"stages[0].deployment_strategy", `"canary" is not direct or blue_green_service, and is user_managed here: the steps that the ` +
					"Application has"},
				{"stages[0].remediation_strategy", `"manual" is not automated, and is left out`},
				{"spec.stages[0].sequences[0].tasks[0].properties.pass", `is left out: Invalid value: "auto": auto is not automatic or manual`},
			},
		},
		"values of another type": {
			stage("{name: 1, sequences: [a, {name: true, triggeredOn: dev, tasks: [deployment, {name: wait, properties: [{time: 10m}]}, " +
				"{properties: {}}, {name: [a]}, {name: x, properties: a}]}]}"),
			`[{"name":"1","sequences":[{"name":"true","tasks":[{"name":"deployment"},{"name":"wait","properties":{"time":"10m"}},{"name":"x"}]}]}]`,
			[]Note{
				{"spec.stages[0].sequences[0]", "must be an object, and is left out"},
				{"spec.stages[0].sequences[1].triggeredOn", "must be a list, and is left out"},
				{"spec.stages[0].sequences[1].tasks[0]", "was the text deployment, and is a task now"},
				{"spec.stages[0].sequences[1].tasks[1].properties", "was a list of objects, and is one object now"},
				{"spec.stages[0].sequences[1].tasks[2]", "has no name, and is left out"},
				{"spec.stages[0].sequences[1].tasks[3].name", "must be a text, and is left out"},
				{"spec.stages[0].sequences[1].tasks[3]", "has no name, and is left out"},
				{"spec.stages[0].sequences[1].tasks[4].properties", "must be an object, and is left out"},
			},
		},
		"times": {
			delivering("tasks: [{name: a, triggeredAfter: 10m}, {name: a, triggeredAfter: 1.5h}, {name: a, triggeredAfter: soon}, " +
				"{name: a, triggeredAfter: 200h}, {name: a, triggeredAfter: 1500ms, when: Never}, {name: a, triggeredAfter: 10}]"),
			`[{"name":"dev","sequences":[{"name":"delivery","tasks":[{"name":"a","triggeredAfter":"10m"},{"name":"a","triggeredAfter":"1h30m0s"},` +
				`{"name":"a"},{"name":"a","triggeredAfter":"168h"},{"name":"a","triggeredAfter":"2s"},{"name":"a"}]}]}]`,
			[]Note{
				{"spec.stages[0].sequences[0].tasks[2].triggeredAfter", `"soon" is no duration such as 10m, and is left out: nothing is waited for`},
				{"spec.stages[0].sequences[0].tasks[3].triggeredAfter", "is 168h here, the most that a task may have, in place of 200h"},
				{"spec.stages[0].sequences[0].tasks[4].triggeredAfter", "is 2s here, in whole seconds, in place of 1500ms"},
				{"spec.stages[0].sequences[0].tasks[4].when", "must be Passed, Always or Failed, and is left out"},
				{"spec.stages[0].sequences[0].tasks[5].triggeredAfter", `"10" is no duration such as 10m, and is left out: nothing is waited for`},
			},
		},
		"properties that the webhook refuses": {
			delivering(`tasks: [{name: evaluation, properties: {pass: "90%", warning: "75 %", timeframe: 5m, end: b}}, ` +
				"{name: deployment, properties: {strategy: direct, deploymentstrategy: canary}}, {name: approval, properties: {pass: manual, " +
				"approvals: 11}}, {name: je-test, properties: {any: thing}}]"),
			`[{"name":"dev","sequences":[{"name":"delivery","tasks":[{"name":"evaluation","properties":{"pass":90,"timeframe":"5m","warning":75}},` +
				`{"name":"deployment"},{"name":"approval","properties":{"approvals":10,"pass":"manual"}},` +
				`{"name":"je-test","properties":{"any":"thing"}}]}]}]`,
			[]Note{
				{"spec.stages[0].sequences[0].tasks[0].properties[end]", `is left out: Invalid value: "end": task evaluation has no such ` +
					"property; it has pass, warning, checks, timeframe"},
				{"spec.stages[0].sequences[0].tasks[1].properties[strategy]", `is left out: Invalid value: "strategy": task deployment has no ` +
					"such property; it has deploymentstrategy, to, values"},
				{"spec.stages[0].sequences[0].tasks[1].properties.deploymentstrategy", `is left out: Unsupported value: "canary": supported ` +
					`values: "direct", "blue_green", "blue_green_service", "user_managed"`},
				{"spec.stages[0].sequences[0].tasks[2].properties.approvals", "Invalid value: 11: 11 is not a number from 1 to 10; it is 10 here"},
			},
		},
		"triggers that never match": {
			delivering("tasks: [{name: test}], triggeredOn: [{event: dev.a.finished, selector: {}}, {event: dev.b.finished, selector: {match: " +
				"{evaluation.result: fail}}}, {event: dev.c.finished, selector: {match: {result: failed}}}, {selector: {}}, {event: dev.d.finished, " +
				"selector: {match: {labels.a: b}}}]"),
			`[{"name":"dev","sequences":[{"name":"delivery","triggeredOn":[{"event":"dev.b.finished","selector":{"match":` +
				`{"evaluation.result":"fail"}}}],"tasks":[{"name":"test"}]}]}]`,
			[]Note{
				{"spec.stages[0].sequences[0].triggeredOn[3]", "names no event, and is left out"},
				{"spec.stages[0].sequences[0].triggeredOn[0].selector", "the trigger is left out: event dev.a.finished: Required value: would never " +
					"match: leave selector out for pass, or name result, status, service, TASK.result or TASK.status"},
				{"spec.stages[0].sequences[0].triggeredOn[2].selector", `the trigger is left out: event dev.c.finished: Unsupported value: ` +
					`"failed": supported values: "pass", "warning", "fail"`},
				{"spec.stages[0].sequences[0].triggeredOn[3].selector", `the trigger is left out: event dev.d.finished: Invalid value: "labels.a": ` +
					"cannot be matched: leave selector out for pass, or name result, status, service, TASK.result or TASK.status"},
			},
		},
		"a sequence without tasks": {
			stage("{name: dev, sequences: [{name: delivery}, {name: again, tasks: [{name: test}]}]}"),
			`[{"name":"dev","sequences":[{"name":"again","tasks":[{"name":"test"}]}]}]`,
			[]Note{{"spec.stages[0].sequences[0]", "sequence delivery has no tasks, and is left out"}},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := Read(parsed(t, c.in))
			if err != nil {
				t.Fatal(err)
			}
			checkRead(t, got, c.want, c.notes)
		})
	}
}

// checkRead compares the stages and the notes, and has the spec validated as the webhook does.
func checkRead(t *testing.T, got Shipyard, want string, notes []Note) {
	t.Helper()
	if diff := cmp.Diff(parsed(t, "stages: "+want), asMap(t, got)); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(notes, got.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if errs := rules.Validate("shop", &got.Spec, field.NewPath("spec")); len(errs) > 0 {
		t.Errorf("the webhook refuses it: %v", errs)
	}
}

func asMap(t *testing.T, of Shipyard) map[string]any {
	t.Helper()
	text, err := yaml.Marshal(of.Spec)
	if err != nil {
		t.Fatal(err)
	}
	out := parsed(t, string(text))
	delete(out, "history")
	return out
}

func TestNamesAreMadeValidWithTheEventsThatHaveThem(t *testing.T) {
	const (
		ofStages    = "a stage has at most 63 lower-case letters, digits and -, and is not named status, scale or finalizers"
		ofSequences = "a sequence has at most 63 letters, digits, - and _, and no other of the stage has its name"
		ofTasks     = "a task has at most 63 letters, digits, - and _"
	)
	for sentence, c := range map[string]struct {
		in, want string
		notes    []Note
	}{
		"letters of upper case, dots and spaces": {
			stage("{name: Dev.EU, sequences: [{name: my delivery, tasks: [{name: Deployment}, {name: load test}, {name: result}]}]}, " +
				"{name: prod, sequences: [{name: delivery, tasks: [{name: deployment}], triggeredOn: [{event: Dev.EU.my delivery.finished}, " +
				"{event: Dev.EU.load test.finished, selector: {match: {load test.result: fail}}}]}]}"),
			`[{"name":"dev-eu","sequences":[{"name":"my-delivery","tasks":[{"name":"deployment"},{"name":"load-test"},{"name":"result-task"}]}]},` +
				`{"name":"prod","sequences":[{"name":"delivery","triggeredOn":[{"event":"dev-eu.my-delivery.finished"},` +
				`{"event":"dev-eu.load-test.finished","selector":{"match":{"load-test.result":"fail"}}}],"tasks":[{"name":"deployment"}]}]}]`,
			[]Note{
				{"spec.stages[0].name", `"Dev.EU" is dev-eu here: ` + ofStages},
				{"spec.stages[0].sequences[0].name", `"my delivery" is my-delivery here: ` + ofSequences},
				{"spec.stages[0].sequences[0].tasks[0].name", `"Deployment" is deployment here: the task of Shipper has this name`},
				{"spec.stages[0].sequences[0].tasks[1].name", `"load test" is load-test here: ` + ofTasks},
				{"spec.stages[0].sequences[0].tasks[2].name", `"result" is result-task here: the name is a key of all events`},
			},
		},
		"two stages of one name": {
			stage("{name: prod, sequences: [{name: a, tasks: [{name: test}]}]}, {name: prod, sequences: [{name: a, tasks: [{name: release}]}, " +
				"{name: b, tasks: [{name: test}]}]}"),
			`[{"name":"prod","sequences":[{"name":"a","tasks":[{"name":"test"}]},{"name":"b","tasks":[{"name":"test"}]}]}]`,
			[]Note{
				{"spec.stages[1].name", "stage prod is in the file twice: the first one has the sequences of both"},
				{"spec.stages[0].sequences[1].name", "stage prod has sequence a twice: the second one is left out"},
			},
		},
		"names that become the same, and names of subresources": {
			stage("{name: Dev}, {name: dev}, {name: DEV, sequences: [{name: a b, tasks: [{name: test}]}, {name: a-b, tasks: [{name: test}]}]}, " +
				"{name: status}, {sequences: [{tasks: [{name: test}]}]}"),
			`[{"name":"dev-2"},{"name":"dev"},{"name":"dev-3","sequences":[{"name":"a-b","tasks":[{"name":"test"}]},{"name":"a-b-2",` +
				`"tasks":[{"name":"test"}]}]},{"name":"status-stage"},{"name":"stage","sequences":[{"name":"sequence","tasks":[{"name":"test"}]}]}]`,
			[]Note{
				{"spec.stages[0].name", `"Dev" is dev-2 here: ` + ofStages},
				{"spec.stages[2].name", `"DEV" is dev-3 here: ` + ofStages},
				{"spec.stages[2].sequences[0].name", `"a b" is a-b here: ` + ofSequences},
				{"spec.stages[2].sequences[1].name", `"a-b" is a-b-2 here: ` + ofSequences},
				{"spec.stages[3].name", `"status" is status-stage here: ` + ofStages},
				{"spec.stages[4].name", "is missing: it is stage here"},
				{"spec.stages[4].sequences[0].name", "is missing: it is sequence here"},
			},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := Read(parsed(t, c.in))
			if err != nil {
				t.Fatal(err)
			}
			checkRead(t, got, c.want, c.notes)
		})
	}
}

// FuzzRead has each file that is read validated as the webhook does: what is refused is noted.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"0.1", "0.2"} {
		raw, err := os.ReadFile("testdata/" + name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(raw))
	}
	f.Add(delivering("tasks: [{name: Approval, properties: {approvals: 11, a: b}}], triggeredOn: [{event: a, selector: {match: {b: c}}}]"))
	f.Fuzz(func(t *testing.T, text string) {
		var object map[string]any
		if yaml.Unmarshal([]byte(text), &object) != nil {
			t.Skip()
		}
		got, err := Read(object)
		if err != nil {
			t.Skip()
		}
		if len(got.Spec.Stages) == 0 {
			t.Error("a shipyard without stages")
		}
		for _, err := range rules.Validate("shop", &got.Spec, field.NewPath("spec")) {
			if err.Type != field.ErrorTypeTooLong {
				t.Errorf("the webhook refuses it: %v", err)
			}
		}
	})
}
