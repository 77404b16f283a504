// SPDX-License-Identifier: Apache-2.0

package templatecheck_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/templatecheck"
)

func TestWhatStrategiesDoByThemselves(t *testing.T) {
	for sentence, tc := range map[string]struct {
		edit edit
		want []string
	}{
		"steps go on, fail and go back": {edit: strategy(func(s *shipper.RolloutStrategy) {
			s.Steps[0].After, s.Steps[0].Gate = "1h30m", &shipper.StepGate{}
			s.ProgressDeadline, s.OnFailure, s.FirstRelease = "30s", shipper.OnFailureRetreat, shipper.FirstReleaseImmediate
		})},
		"at once, and after the longest time": {edit: strategy(func(s *shipper.RolloutStrategy) {
			s.Steps[0].After, s.ProgressDeadline, s.OnFailure = "0s", "720h", shipper.OnFailureAbort
		})},
		"times that are none": {
			edit: strategy(func(s *shipper.RolloutStrategy) { s.Steps[0].After, s.ProgressDeadline = "10", "-1m" }),
			want: []string{
				`env.strategy.steps[0].after: Invalid value: "10": must be a duration in h, m and s, such as 10m or 1h30m`,
				`env.strategy.progressDeadline: Invalid value: "-1m": must be a duration in h, m and s, such as 10m or 1h30m`,
			},
		},
		"times out of bounds": {
			edit: strategy(func(s *shipper.RolloutStrategy) { s.Steps[0].After, s.ProgressDeadline = "721h", "29s" }),
			want: []string{
				`env.strategy.steps[0].after: Invalid value: "721h": must be at most 720h`,
				`env.strategy.progressDeadline: Invalid value: "29s": must be at least 30s`,
			},
		},
		"the last step does not end": {
			edit: strategy(func(s *shipper.RolloutStrategy) { s.Steps[1].After, s.Steps[1].Gate = "10m", &shipper.StepGate{} }),
			want: []string{
				"env.strategy.steps[1].after: Forbidden: no step follows the last one: leave after out",
				"env.strategy.steps[1].gate: Forbidden: no step follows the last one: leave gate out",
			},
		},
		"there is no step to go back to": {
			edit: strategy(func(s *shipper.RolloutStrategy) {
				s.Steps[0].Traffic.Contender, s.OnFailure = 1, shipper.OnFailureRetreat
			}),
			want: []string{`env.strategy.onFailure: Invalid value: "Retreat": needs a step before step 0 (staging) in which the contender ` +
				`has no traffic, such as {capacity: {contender: 1, incumbent: 100}, traffic: {contender: 0, incumbent: 100}}`},
		},
		"words that are none": {
			edit: strategy(func(s *shipper.RolloutStrategy) { s.OnFailure, s.FirstRelease = "Panic", "Never" }),
			want: []string{
				`env.strategy.onFailure: Unsupported value: "Panic": supported values: "Hold", "Retreat", "Abort"`,
				`env.strategy.firstRelease: Unsupported value: "Never": supported values: "Steps", "Immediate"`,
			},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got []string
			for _, err := range templatecheck.Validate(env(tc.edit), field.NewPath("env")) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func strategy(change func(*shipper.RolloutStrategy)) edit {
	return func(e *shipper.ReleaseEnvironment) { change(e.Strategy) }
}
