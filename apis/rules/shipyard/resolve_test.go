// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestRunsAreResolved(t *testing.T) {
	of := spec(t, `
services: [web]
stages:
- {name: staging, sequences: [{name: delivery, tasks: [{name: deployment}]}]}
- {name: production, sequences: [{name: delivery, tasks: [{name: deployment}]}, {name: rollback, tasks: [{name: rollback}]}]}
- {name: empty}
`)
	for sentence, tc := range map[string]struct {
		run  shipper.SequenceRunSpec
		want shipper.SequenceRunSpec
		err  string
	}{
		"nothing is named": {want: shipper.SequenceRunSpec{Stage: "staging", Sequence: "delivery", Service: "web"}},
		"KS19: each stage has evaluation": {
			run:  shipper.SequenceRunSpec{Stage: "empty", Sequence: "evaluation"},
			want: shipper.SequenceRunSpec{Stage: "empty", Sequence: "evaluation", Service: "web"},
		},
		"a stage of two sequences": {
			run:  shipper.SequenceRunSpec{Stage: "production"},
			want: shipper.SequenceRunSpec{Stage: "production", Service: "web"},
			err:  "spec.sequence: Required value: name a sequence; there are: delivery, rollback",
		},
		"an unknown stage": {
			run: shipper.SequenceRunSpec{Stage: "prod"}, want: shipper.SequenceRunSpec{Stage: "prod", Service: "web"},
			err: `spec.stage: Invalid value: "prod": is no stage of the shipyard; there are: staging, production, empty`,
		},
		"an unknown service": {
			run: shipper.SequenceRunSpec{Service: "api"}, want: shipper.SequenceRunSpec{Stage: "staging", Sequence: "delivery", Service: "api"},
			err: `spec.service: Invalid value: "api": is no service of the shipyard; there are: web`,
		},
		"a stage without sequences": {
			run:  shipper.SequenceRunSpec{Stage: "empty", Sequence: "x"},
			want: shipper.SequenceRunSpec{Stage: "empty", Sequence: "x", Service: "web"},
			err:  `spec.sequence: Invalid value: "x": is no sequence of the shipyard; there is none`,
		},
		"reserved data": {
			run:  shipper.SequenceRunSpec{Data: shipper.FreeForm{"result": "pass"}},
			want: shipper.SequenceRunSpec{Stage: "staging", Sequence: "delivery", Service: "web", Data: shipper.FreeForm{"result": "pass"}},
			err:  "spec.data[result]: Forbidden: is written by Shipper: leave it out",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			run := &shipper.SequenceRun{Spec: tc.run}
			Default(&Request{Run: run, Yard: &shipper.Shipyard{Spec: *of}})
			got := run.Spec
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			text := ""
			if errs := ValidateRun(&shipper.SequenceRun{Spec: got}, of); len(errs) > 0 {
				text = errs.ToAggregate().Error()
			}
			if diff := cmp.Diff(tc.err, text); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAServiceReachesNoApplicationOfAnotherStage: who may start runs in one stage would deploy what another stage approves.
func TestAServiceReachesNoApplicationOfAnotherStage(t *testing.T) {
	const two = "stages: [{name: dev, application: '{service}', %s sequences: [{name: d, tasks: [{name: deployment}]}]}, " +
		"{name: production, %s sequences: [{name: d, tasks: [{name: deployment}]}]}]"
	const refused = `spec.service: Invalid value: "web-production": its Application in stage dev may be one of stage production: give the ` +
		`service another name, or the stages namespaces of their own`
	for sentence, tc := range map[string]struct{ dev, production, service, want string }{
		"the name of another stage's Application":          {service: "web-production", want: refused},
		"the Shipyard's namespace by its name":             {dev: "namespace: shop,", service: "web-production", want: refused},
		"another name":                                     {service: "web"},
		"the name of an Application of another namespace":  {dev: "namespace: dev,", service: "web-production"},
		"the name of an Application in its own namespaces": {production: "namespace: production,", service: "web-production"},
	} {
		t.Run(sentence, func(t *testing.T) {
			run := &shipper.SequenceRun{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"},
				Spec:       shipper.SequenceRunSpec{Shipyard: "shop", Stage: "dev", Sequence: "d", Service: tc.service},
			}
			got := ""
			if errs := ValidateRun(run, spec(t, fmt.Sprintf(two, tc.dev, tc.production))); len(errs) > 0 {
				got = errs.ToAggregate().Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Scenario 25.
func TestVersionsHaveToHavePassed(t *testing.T) {
	of := &shipper.Shipyard{Spec: *spec(t, `
stages:
- {name: staging, sequences: [{name: delivery, tasks: [{name: deployment}]}, {name: smoke, tasks: [{name: test}]}]}
- name: production
  requires: [{stage: staging, soak: 1h}]
  sequences: [{name: delivery, tasks: [{name: deployment}]}, {name: rollback, tasks: [{name: rollback}]}]
`)}
	run := func(stage, sequence, version string) *shipper.SequenceRun {
		out := &shipper.SequenceRun{Spec: shipper.SequenceRunSpec{Stage: stage, Sequence: sequence, Service: "web"}}
		out.Status.Resolved = Resolved(Snapshot(of), stage, sequence)
		out.Status.Resolved.Version.Version = version
		return out
	}
	ended := func(r *shipper.SequenceRun, result shipper.Result, ago time.Duration) *shipper.SequenceRun {
		at := metav1.NewTime(start.Add(-ago))
		r.Status.Result, r.Status.FinishTime = result, &at
		r.Status.Conditions = []shipper.Condition{{Type: shipper.RunFinished, Status: "True"}}
		return r
	}
	known := []*shipper.SequenceRun{
		ended(run("staging", "delivery", "1.0.0"), shipper.ResultPass, 5*time.Hour),
		ended(run("staging", "delivery", "1.1.0"), shipper.ResultPass, 3*time.Hour),
		ended(run("staging", "delivery", "1.1.0"), shipper.ResultPass, time.Minute), // the first counts
		ended(run("staging", "delivery", "1.2.0"), shipper.ResultPass, 20*time.Minute),
		ended(run("staging", "delivery", "1.3.0"), shipper.ResultFail, 4*time.Hour),
		ended(run("staging", "smoke", "1.3.0"), shipper.ResultPass, 4*time.Hour),
		run("staging", "delivery", "1.4.0"),
	}
	for version, want := range map[string]string{
		"1.1.0": "",
		"1.2.0": "version 1.2.0 passed in stage staging at 2026-03-01T11:40:00Z and has to soak for 1h: until 2026-03-01T12:40:00Z",
		"1.3.0": "version 1.3.0 has not passed in stage staging; 1.1.0, 1.0.0 have",
		"1.4.0": "version 1.4.0 has not passed in stage staging; 1.1.0, 1.0.0 have",
	} {
		got, ready := Unmet(run("production", "delivery", version), known, start)
		if got := strings.Join(got, "; "); got != want {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
		if soaks := version == "1.2.0"; soaks != ready.Equal(start.Add(40*time.Minute)) || !soaks && !ready.IsZero() {
			t.Errorf("%s: ready at %s", version, ready)
		}
	}
	if got, _ := Unmet(run("production", "rollback", "1.3.0"), known, start); got != nil {
		t.Errorf("a run that deploys nothing: %v", got)
	}
}

func TestRunsAreBounded(t *testing.T) {
	one := &shipper.SequenceRun{Spec: shipper.SequenceRunSpec{Shipyard: "shop", Stage: "a", Sequence: "d"}}
	one.Status.Resolved = &shipper.ResolvedRun{Context: "1"}
	many := func(n int, edit func(*shipper.SequenceRun)) []*shipper.SequenceRun {
		out := make([]*shipper.SequenceRun, n)
		for i := range out {
			out[i] = one.DeepCopy()
			edit(out[i])
		}
		return out
	}
	done := func(r *shipper.SequenceRun) {
		r.Status.Conditions = []shipper.Condition{{Type: shipper.RunFinished, Status: "True"}}
	}
	led := one.DeepCopy()
	of := &shipper.ShipyardSnapshot{Stages: []shipper.Stage{{Name: "a", Sequences: []shipper.Sequence{{Name: "d"}}}}}
	for depth, want := range map[int32]string{
		2: "", 60: "", 61: "more than 60 runs lead here, each triggered by the one before: the triggers are a circle",
	} {
		led.Status.Resolved.TriggeredBy = &shipper.RunTrigger{Depth: depth}
		if got := TooMany(led, of, nil); got != want {
			t.Errorf("depth %d: %q, want %q", depth, got, want)
		}
	}
	for want, known := range map[string][]*shipper.SequenceRun{
		"": many(MaxOfSequence-1, done),
		"20 runs of sequence d in stage a follow from one another: the triggers are a circle": many(MaxOfSequence, done),
		"200 runs of stage a of shipyard shop are not finished: wait, or abort " +
			"some": many(MaxUnfinished, func(r *shipper.SequenceRun) { r.Status.Resolved.Context = "2" }),
	} {
		if got := TooMany(one, nil, known); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
