// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func step(name string, capacityContender, capacityIncumbent, trafficContender, trafficIncumbent int32) shipper.RolloutStrategyStep {
	return shipper.RolloutStrategyStep{
		Name:     name,
		Capacity: shipper.RolloutStrategyStepValue{Contender: capacityContender, Incumbent: capacityIncumbent},
		Traffic:  shipper.RolloutStrategyStepValue{Contender: trafficContender, Incumbent: trafficIncumbent},
	}
}

func of(n ...int32) []int32 { return n }

func TestSteps(t *testing.T) {
	usual := &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{
		step("staging", 1, 100, 0, 100), step("50/50", 50, 50, 50, 50), step("full on", 100, 0, 100, 0),
	}}
	for sentence, tc := range map[string]struct {
		strategy  *shipper.RolloutStrategy
		contender []int32
		incumbent []int32
		want      []string
	}{
		"a rollout over an incumbent": {usual, of(10), of(10), []string{
			"step 0 (staging): contender 1 Pod, 0 in traffic, incumbent 10 Pods, 10 in traffic",
			"step 1 (50/50): contender 5 Pods, 5 in traffic, incumbent 5 Pods, 5 in traffic",
			"step 2 (full on): contender 10 Pods, 10 in traffic, incumbent 0 Pods, 0 in traffic",
		}},
		"a first rollout": {usual, of(3), nil, []string{
			"step 0 (staging): contender 1 Pod, 0 in traffic",
			"step 1 (50/50): contender 2 Pods, 2 in traffic",
			"step 2 (full on): contender 3 Pods, 3 in traffic",
		}},
		"weights that ask for more Pods than there are": {
			&shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{step("canary", 10, 100, 50, 50)}}, of(10), of(10),
			[]string{"step 0 (canary): contender 1 Pod, 1 in traffic, incumbent 10 Pods, 6 in traffic"},
		},
		"no weight at all": {
			&shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{step("dark", 100, 100, 0, 0)}}, of(2), of(2),
			[]string{"step 0 (dark): contender 2 Pods, 0 in traffic, incumbent 2 Pods, 0 in traffic"},
		},
		"no replicas": {
			&shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{step("full on", 100, 0, 100, 0)}}, of(0), of(0),
			[]string{"step 0 (full on): contender 0 Pods, 0 in traffic, incumbent 0 Pods, 0 in traffic"},
		},
		"several Deployments, each with its share": {usual, of(1, 4), of(1, 2), []string{
			"step 0 (staging): contender 2 Pods, 0 in traffic, incumbent 3 Pods, 3 in traffic",
			"step 1 (50/50): contender 3 Pods, 3 in traffic, incumbent 2 Pods, 2 in traffic",
			"step 2 (full on): contender 5 Pods, 5 in traffic, incumbent 0 Pods, 0 in traffic",
		}},
		"no strategy": {nil, of(3), nil, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got []string
			for _, s := range Steps(tc.strategy, tc.contender, tc.incumbent) {
				got = append(got, s.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestSharesSayWhatTheStepSays(t *testing.T) {
	s := Steps(&shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{step("canary", 10, 90, 1, 99)}}, of(0), of(0))[0]
	const want = "step 0 (canary): contender 10 % of capacity, weight 1 in traffic, " +
		"incumbent 90 % of capacity, weight 99 in traffic"
	if got := s.Shares(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestStepsSayHowTheyEnd(t *testing.T) {
	s := &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{{}, {}, {}, {}}, ProgressDeadline: "10m"}
	s.Steps[0].Gate = &shipper.StepGate{Approvals: 2}
	s.Steps[1].After, s.Steps[1].ReadinessGates = "5m", []string{"example.com/A", "example.com/B"}
	s.Steps[2].After = "0s"
	var got []string
	for _, step := range Steps(s, of(1), nil) {
		got = append(got, step.Awaited())
	}
	for _, policy := range []shipper.FailurePolicy{"", shipper.OnFailureHold, shipper.OnFailureRetreat, shipper.OnFailureAbort} {
		s.OnFailure = policy
		got = append(got, Failure(s, false))
	}
	got = append(got, Failure(s, true))
	const failed = "the rollout fails if a step lacks installation, capacity or traffic for 10m: "
	want := []string{
		"; it is a gate that asks for 2 approvals",
		"; it waits for example.com/A, example.com/B; it advances by itself after 5m", "; it advances by itself after 0s", "",
		failed + "it waits for a person", failed + "it waits for a person",
		failed + "it retreats to the last step before in which the contender has no traffic, or waits where there is none",
		failed + "it is aborted", failed + "it waits for a person, because a first Release has nothing to go back to",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if text := Failure(&shipper.RolloutStrategy{}, false); text != "" {
		t.Errorf("nothing fails by time: %s", text)
	}
}

func TestChecksAreDescribed(t *testing.T) {
	prometheus := &shipper.PrometheusCheck{}
	for want, tc := range map[string]struct {
		check shipper.StepCheck
		spec  *shipper.CheckSpec
		after shipper.Duration
	}{
		"errors (there is no Check errors)": {check: shipper.StepCheck{Check: "errors"}},
		"errors (10 measurements until 9m after the step has its capacity and traffic)": {
			check: shipper.StepCheck{Check: "shipper-checks/errors"}, spec: &shipper.CheckSpec{Prometheus: prometheus}, after: "10m",
		},
		"fast (1 measurement until 1m10s after the step has its capacity and traffic, over all clusters, it does not count)": {
			check: shipper.StepCheck{Check: "errors", Name: "fast", DryRun: true},
			spec:  &shipper.CheckSpec{Prometheus: prometheus, InitialDelay: "70s", Over: shipper.OverFleet},
		},
		"long (3 measurements until 2h after the step has its capacity and traffic)": {
			check: shipper.StepCheck{Check: "long"}, spec: &shipper.CheckSpec{Prometheus: prometheus, Interval: "1h", Count: 3},
		},
		"smoke (once in each cluster, within 10m)": {
			check: shipper.StepCheck{Check: "smoke"}, spec: &shipper.CheckSpec{Tests: &shipper.TestsCheck{}},
		},
	} {
		if got := Check(tc.check, tc.spec, tc.after); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestStepsWithChecksAreGates(t *testing.T) {
	s := &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{{}, {}, {}}, OnFailure: shipper.OnFailureAbort}
	s.Steps[0].Checks = []shipper.StepCheck{{Check: "smoke"}}
	s.Steps[1].Checks = []shipper.StepCheck{{Check: "smoke", DryRun: true}}
	steps := Steps(s, of(1), nil)
	steps[0].Checks, steps[1].Checks = []string{"a", "b"}, []string{"c"}
	var got []string
	for _, step := range steps {
		got = append(got, step.Awaited())
	}
	got = append(got, Failure(s, false))
	s.ProgressDeadline = "5m"
	got = append(got, Failure(s, false))
	want := []string{
		"; it is checked by a, b; it is a gate", "; it is checked by c", "", "the rollout fails if a check fails: it is aborted",
		"the rollout fails if a step lacks installation, capacity or traffic for 5m or if a check fails: it is aborted",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
