// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func spec(t *testing.T, text string) *shipper.ShipyardSpec {
	t.Helper()
	out := &shipper.ShipyardSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// The bad inputs of §13 that are of a Shipyard.
func TestShipyardsThatAreRefused(t *testing.T) {
	sequence := func(text string) string { return "stages: [{name: a, sequences: [" + text + "]}, {name: b}]" }
	const match = "spec.stages[0].sequences[0].triggeredOn[0].selector.match"
	const remedy = "leave selector out for pass, or name result, status, service, TASK.result or TASK.status"
	const job = "spec.stages[0].sequences[0].tasks[0].properties.job"
	on := func(match string) string {
		return sequence("{name: d, tasks: [{name: test}], triggeredOn: [{event: b.d.finished, selector: {match: " + match + "}}]}")
	}
	for text, want := range map[string]string{
		sequence("{name: d, tasks: [{name: deployment}, {name: test}, {name: test}]}"): "",
		sequence("{name: d, tasks: []}"): "spec.stages[0].sequences[0].tasks: Required " +
			"value: sequence d has no tasks",
		on("{}"): match + ": Required value: would never match: " + remedy,
		on("{labels.x: y}"): match + `[labels.x]: Invalid value: ` +
			`"labels.x": cannot be matched: ` + remedy,
		on("{result: passed}"): match + `[result]: Unsupported value: ` +
			`"passed": supported values: "pass", "warning", "fail"`,
		on("{test.status: aborted}"): "",
		sequence("{name: d, tasks: [{name: Approval}]}"): "spec.stages[0].sequences[0].tasks[0].name: Invalid value: " +
			`"Approval": Shipper does not do it: did you mean "approval"?`,
		sequence("{name: d, tasks: [{name: approval, properties: {approvls: 2}}]}"): "spec.stages[0].sequences[0].tasks[0]." +
			`properties[approvls]: Invalid value: "approvls": task approval has no such property; did you mean "approvals"?`,
		sequence("{name: d, tasks: [{name: release, properties: {colour: red}}]}"): "spec.stages[0].sequences[0].tasks[0]." +
			`properties[colour]: Invalid value: "colour": task release has no such property; it has to`,
		sequence("{name: d, tasks: [{name: approval, properties: {approvals: " +
			"11}}]}"): "spec.stages[0].sequences[0].tasks[0].properties.approvals: " +
			"Invalid value: 11: 11 is not a number from 1 to 10",
		sequence("{name: d, tasks: [{name: approval, properties: {pass: " +
			"sometimes}}]}"): "spec.stages[0].sequences[0].tasks[0].properties.pass: " +
			`Invalid value: "sometimes": sometimes is not automatic or manual`,
		sequence("{name: d, tasks: [{name: deployment, properties: {deploymentstrategy: bleu}}]}"): "spec.stages[0].sequences[0].tasks[0]." +
			`properties.deploymentstrategy: Unsupported value: "bleu": supported values: "direct", "blue_green", "blue_green_service", ` +
			`"user_managed"`,
		sequence("{name: d, tasks: [{name: test, properties: {job: {template: {spec: {containers: [{name: a, " +
			"image: '{{args.image}}'}]}}}}}]}"): "",
		sequence("{name: d, tasks: [{name: test, properties: {job: {backoffLimit: 2, template: {spec: {restartPolicy: Never, " +
			"containers: [{name: a, image: b, resources: {limits: {cpu: 1}}}]}}}}}]}"): "",
		sequence("{name: d, tasks: [{name: test, properties: {job: smoke}}]}"): job + `: Invalid value: "string": ` +
			"is no spec of a batch/v1 Job: write an object with template",
		sequence("{name: d, tasks: [{name: test, properties: {job: {template: {spec: {container: []}}}}}]}"): job + `: Invalid value: ` +
			`"(38 bytes)": is no spec of a batch/v1 Job: strict decoding error: unknown field "template.spec.container"`,
		sequence("{name: d, tasks: [{name: test, properties: {job: {template: {spec: {}}}}}]}"): job + ".template.spec.containers: " +
			"Required value: say what the Job runs",
		sequence("{name: d, tasks: [{name: test, properties: {job: {template: {metadata: {labels: {shipper-app: web}}, spec: {restartPolicy: " +
			"Always, containers: [{name: a}]}}}}}]}"): "[" + job + `.template.spec.restartPolicy: Unsupported value: "Always": supported ` +
			`values: "Never", "OnFailure", ` + job + ".template.metadata.labels[shipper-app]: Forbidden: labels of Shipper select the Pods " +
			"of Releases, and Services: leave it out]",
		sequence("{name: d, tasks: [{name: labels}]}"): `spec.stages[0].sequences[0].tasks[0].name: Invalid value: "labels": is a key of all ` +
			"events: the data of the task would have no place",
		sequence("{name: d, timeout: 30s, tasks: [{name: test, triggeredAfter: " +
			"200h}]}"): "[spec.stages[0].sequences[0].tasks[0].triggeredAfter: " +
			`Invalid value: "200h": from 0s to 168h, spec.stages[0].sequences[0].timeout: Invalid value: "30s": from 1m to 720h]`,
		sequence("{name: d, tasks: [{name: test, properties: {a: " +
			"" + strings.Repeat("x", MaxProperties) + "}}]}"): "spec.stages[0].sequences[0].tasks[0]." +
			"properties: Too long: may not be more than 16384 bytes",
		"stages: [{name: a, requires: [{stage: a}]}]": `spec.stages[0].requires[0].stage: Invalid value: "a": ` +
			`a stage cannot require itself`,
		"stages: [{name: a, requires: [{stage: c}]}]":                         `spec.stages[0].requires[0].stage: Not found: "c"`,
		"stages: [{name: a, requires: [{stage: b, sequence: x}]}, {name: b}]": `spec.stages[0].requires[0].sequence: Not found: "x"`,
		"stages: [{name: a, requires: [{stage: b}]}, {name: b, requires: [{stage: a}]}]": `spec.stages[0].requires: Invalid value: ` +
			`"a": is required ` +
			"by a stage that it requires",
		"stages: [{name: a, application: '{svc}'}]": `spec.stages[0].application: Invalid value: "{svc}": {svc} is not {service}, ` +
			`{stage}, {shipyard}`,
		"stages: [{name: a, application: web}]": `spec.stages[0].application: Invalid value: "web": has no {service}: all ` +
			`services would be one Application`,
		"stages: [{name: a, application: '{service}', sequences: [{name: d, tasks: [{name: deployment}]}]}, " +
			"{name: b, application: '{service}', sequences: [{name: d, tasks: [{name: deployment}]}]}]": `spec.stages[1]: Invalid value: ` +
			`"b": deploys to ` +
			"the Application of stage a: give it another namespace or application",
		"stages: [{name: a, application: '{service}', sequences: [{name: d, tasks: [{name: deployment}]}]}, " +
			"{name: b, namespace: shop, sequences: [{name: d, tasks: [{name: deployment}]}]}]": `spec.stages[1]: Invalid value: ` +
			`"b": deploys to the Application of stage a: give it another namespace or application`,
		"stages: [{name: a, application: '{service}-{service}', sequences: [{name: d, tasks: [{name: test}]}]}]": `spec.stages[0].` +
			`application: Invalid value: "{service}-{service}": has {service} twice: leave one out`,
		"stages: [{name: a, application: '-{service}', sequences: [{name: d, tasks: [{name: test}]}]}]": `spec.stages[0].application: ` +
			`Invalid value: "-{service}": makes no names of objects: use lower-case letters, digits, - and .`,
	} {
		got := ""
		if errs := Validate("shop", spec(t, text), field.NewPath("spec")); len(errs) > 0 {
			got = errs.ToAggregate().Error()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%.200s: -want +got:\n%s", text, diff)
		}
	}
}

func TestShipyardsThatAreWarnedOf(t *testing.T) {
	got := Warnings(spec(t, `
stages:
- name: dev
  sequences:
  - {name: delivery, tasks: [{name: deployment}, {name: load-test}, {name: approvl}]}
- name: production
  sequences:
  - name: delivery
    tasks: [{name: deployment}]
    triggeredOn:
    - {event: hardening.delivery.finished}
    - {event: dev.delivry.finished}
    - {event: dev.delivery.finished}
    - {event: dev.deployment.finished}
    - {event: dev.evaluation.finished}
    - {event: problem.open}
- name: emergency
  sequences: [{name: delivery, tasks: [{name: deployment}]}]
- name: later
`))
	want := []string{
		`stages[0].sequences[0].tasks[1]: Shipper does not do task "load-test": a run fails there`,
		`stages[0].sequences[0].tasks[2]: Shipper does not do task "approvl": a run fails there; did you mean "approval"?`,
		`stages[1].sequences[0].triggeredOn[0]: stage "hardening" is not in this shipyard (dev, production, emergency, later), and ` +
			`nothing in it triggers this`,
		`stages[1].sequences[0].triggeredOn[1]: stage dev has no sequence and no task "delivry": nothing triggers this`,
		`stages[1].sequences[0].triggeredOn[5]: event problem.open is not the end of a sequence, and Shipper receives no other events ` +
			`yet: nothing triggers this`,
		`stages[2]: no event starts a run in stage emergency: it is started by hand`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestEvaluationsWithoutChecksAreWarnedOf(t *testing.T) {
	const unmeasured = "names no Checks: it passes, and nothing is measured; name Checks in properties.checks"
	stages := func(tasks string) *shipper.ShipyardSpec {
		return spec(t, "stages: [{name: dev, sequences: [{name: delivery, tasks: ["+tasks+"]}]}]")
	}
	for tasks, want := range map[string][]string{
		"{name: test}":       nil,
		"{name: evaluation}": {"stages[0].sequences[0].tasks[0]: task evaluation " + unmeasured},
		"{name: test}, {name: evaluate, properties: {timeframe: 5m}}": {"stages[0].sequences[0].tasks[1]: task evaluate " + unmeasured},
		"{name: evaluation, properties: {checks: [{check: errors}]}}": nil,
		"{name: evaluation, properties: {checks: []}}":                {"stages[0].sequences[0].tasks[0]: task evaluation " + unmeasured},
		"{name: evaluation}, {name: test}, {name: evaluation}, {name: evaluation}": {"stages[0].sequences[0].tasks[0]: task evaluation " +
			unmeasured + " (the same for 2 more: stages[0].sequences[0].tasks[2], stages[0].sequences[0].tasks[3])"},
		strings.Repeat("{name: evaluation}, ", 8): {"stages[0].sequences[0].tasks[0]: task evaluation " + unmeasured +
			" (the same for 7 more: stages[0].sequences[0].tasks[1], stages[0].sequences[0].tasks[2], stages[0].sequences[0].tasks[3], " +
			"stages[0].sequences[0].tasks[4], stages[0].sequences[0].tasks[5], …)"},
	} {
		if diff := cmp.Diff(want, Warnings(stages(tasks))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tasks, diff)
		}
	}
}

func TestNamesOfApplications(t *testing.T) {
	for _, tc := range []struct {
		stage shipper.Stage
		want  string
	}{
		{shipper.Stage{Name: "staging"}, "web-staging"},
		{shipper.Stage{Name: "production", Namespace: "shop-prod"}, "web"},
		{shipper.Stage{Name: "production", Application: "{shipyard}-{service}-{stage}"}, "shop-web-production"},
	} {
		if got := ApplicationOf(&tc.stage, "shop", "web"); got != tc.want {
			t.Errorf("%s, want %s", got, tc.want)
		}
	}
}
