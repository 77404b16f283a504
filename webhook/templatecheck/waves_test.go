// SPDX-License-Identifier: Apache-2.0

package templatecheck_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/templatecheck"
)

func TestWaves(t *testing.T) {
	tier := func(value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"tier": value}}
	}
	bounded := func(text string) *intstr.IntOrString { return new(intstr.Parse(text)) }
	for sentence, tc := range map[string]struct {
		edit edit
		want []string
	}{
		"waves with and without a selector and a bound": {edit: strategy(func(s *shipper.RolloutStrategy) {
			s.Advance = shipper.AdvanceAutomatic
			s.Waves = []shipper.Wave{{Name: "canary", ClusterSelector: tier("canary")}, {Name: "rest", MaxConcurrency: bounded("25%")}}
		})},
		"names that are none": {
			edit: strategy(func(s *shipper.RolloutStrategy) {
				s.Waves = []shipper.Wave{{Name: "Canary_1", ClusterSelector: tier("a")}, {Name: "b", ClusterSelector: tier("b")}, {Name: "b"}}
			}),
			want: []string{
				`env.strategy.waves[0].name: Invalid value: "Canary_1": a lowercase RFC 1123 label must consist of lower case alphanumeric ` +
					`characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for ` +
					`validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
				`env.strategy.waves[2].name: Duplicate value: "b"`,
			},
		},
		"two waves for the rest": {
			edit: strategy(func(s *shipper.RolloutStrategy) { s.Waves = []shipper.Wave{{Name: "a"}, {Name: "b"}} }),
			want: []string{`env.strategy.waves[1].clusterSelector: Invalid value: "": waves[0] (a) has all the rest already: say which clusters ` +
				`this wave has`},
		},
		"a bound that lets nothing change, and one that is none": {
			edit: strategy(func(s *shipper.RolloutStrategy) {
				s.Waves = []shipper.Wave{
					{Name: "a", MaxConcurrency: bounded("0")}, {Name: "b", ClusterSelector: tier("b"), MaxConcurrency: bounded("101%")},
				}
			}),
			want: []string{
				`env.strategy.waves[0].maxConcurrency: Invalid value: "0": then no cluster could ever change: at least 1`,
				`env.strategy.waves[1].maxConcurrency: Invalid value: "101%": write a number of clusters such as 1, or a percentage of them from ` +
					`0% to 100%`,
			},
		},
		"a selector that is none": {
			edit: strategy(func(s *shipper.RolloutStrategy) {
				s.Waves = []shipper.Wave{{Name: "a", ClusterSelector: &metav1.LabelSelector{
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Like", Values: []string{"x"}}},
				}}}
			}),
			want: []string{`env.strategy.waves[0].clusterSelector.matchExpressions[0].operator: Invalid value: "Like": not a valid selector ` +
				`operator`},
		},
		"selectors that take long to match": {
			edit: strategy(func(s *shipper.RolloutStrategy) {
				labels, values := map[string]string{}, []string{}
				for i := range 101 {
					values = append(values, fmt.Sprint("v", i))
					if i < 21 {
						labels[fmt.Sprint("l", i)] = "x"
					}
				}
				s.Waves = []shipper.Wave{{Name: "a", ClusterSelector: &metav1.LabelSelector{MatchLabels: labels}}, {
					Name: "b", ClusterSelector: &metav1.LabelSelector{
						MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "In", Values: values}},
					},
				}}
			}),
			want: []string{
				"env.strategy.waves[0].clusterSelector: Too many: 21: must have at most 20 items",
				"env.strategy.waves[1].clusterSelector.matchExpressions[0].values: Too many: 101: must have at most 100 items",
			},
		},
		"advance without waves, and one that is none": {
			edit: strategy(func(s *shipper.RolloutStrategy) { s.Advance = shipper.AdvanceAutomatic }),
			want: []string{"env.strategy.advance: Forbidden: only with waves: after says when a step goes on by itself"},
		},
		"what a wave waits for": {edit: strategy(func(s *shipper.RolloutStrategy) {
			s.Waves = []shipper.Wave{
				{Name: "a", ClusterSelector: tier("a"), AfterTasks: &shipper.WaveTasks{Approvals: 2, Conditions: []string{"example.com/Verified"}}},
				{Name: "b", ClusterSelector: tier("b"), AfterTasks: &shipper.WaveTasks{Wait: "1h30m"}}, {Name: "c"},
			}
		})},
		"what a wave waits for, empty, out of bounds, and on the last wave": {
			edit: strategy(func(s *shipper.RolloutStrategy) {
				s.Waves = []shipper.Wave{
					{Name: "a", ClusterSelector: tier("a"), AfterTasks: &shipper.WaveTasks{}},
					{Name: "b", ClusterSelector: tier("b"), AfterTasks: &shipper.WaveTasks{Approvals: 11, Conditions: []string{"Verified"}}},
					{Name: "c", AfterTasks: &shipper.WaveTasks{Approvals: 1}},
				}
			}),
			want: []string{
				`env.strategy.waves[0].afterTasks: Required value: name approvals, conditions, a wait or checks: without them there is ` +
					`nothing to wait for`,
				`env.strategy.waves[1].afterTasks.conditions[0]: Invalid value: "Verified": must be a type of condition that another controller ` +
					`owns, with its domain: example.com/Verified`,
				`env.strategy.waves[1].afterTasks.approvals: Invalid value: 11: must be from 1 to 10`,
				`env.strategy.waves[2].afterTasks: Forbidden: not on the last wave: no wave follows that could wait`,
			},
		},
		"what a wave waits for before it begins, also the last": {edit: strategy(func(s *shipper.RolloutStrategy) {
			s.Waves = []shipper.Wave{
				{Name: "a", ClusterSelector: tier("a"), BeforeTasks: &shipper.WaveTasks{Approvals: 10, Conditions: []string{"example.com/Ready"}}},
				{Name: "b", BeforeTasks: &shipper.WaveTasks{Wait: "1h30m"}},
			}
		})},
		"what it waits for, empty, out of bounds, and with checks": {
			edit: strategy(func(s *shipper.RolloutStrategy) {
				s.Waves = []shipper.Wave{
					{Name: "a", ClusterSelector: tier("a"), BeforeTasks: &shipper.WaveTasks{AllowServiceAccounts: true}},
					{Name: "b", ClusterSelector: tier("b"), BeforeTasks: &shipper.WaveTasks{
						Approvals: 11, Conditions: []string{"Ready"}, Wait: "0s",
					}},
					{Name: "c", BeforeTasks: &shipper.WaveTasks{Approvals: 1, Checks: []shipper.StepCheck{{Check: "errors"}}}},
				}
			}),
			want: []string{
				`env.strategy.waves[0].beforeTasks: Required value: name approvals, conditions or a wait: without them there is nothing to wait for`,
				`env.strategy.waves[1].beforeTasks.conditions[0]: Invalid value: "Ready": must be a type of condition that another controller ` +
					`owns, with its domain: example.com/Verified`,
				`env.strategy.waves[1].beforeTasks.wait: Invalid value: "0s": must be at least 1s`,
				`env.strategy.waves[1].beforeTasks.approvals: Invalid value: 11: must be from 1 to 10`,
				`env.strategy.waves[2].beforeTasks.checks: Forbidden: not before a wave: nothing of the Release runs in its clusters that a check ` +
					`could measure; use afterTasks of the wave before`,
			},
		},
		"a wait that is none, too short, and too long": {
			edit: strategy(func(s *shipper.RolloutStrategy) {
				for _, wait := range []shipper.Duration{"an hour", "0s", "721h", ""} {
					s.Waves = append(s.Waves, shipper.Wave{
						Name: fmt.Sprint("w", len(s.Waves)), ClusterSelector: tier("a"), AfterTasks: &shipper.WaveTasks{Wait: wait},
					})
				}
				s.Waves = append(s.Waves, shipper.Wave{Name: "rest"})
			}),
			want: []string{
				`env.strategy.waves[0].afterTasks.wait: Invalid value: "an hour": must be a duration in h, m and s, such as 10m or 1h30m`,
				`env.strategy.waves[1].afterTasks.wait: Invalid value: "0s": must be at least 1s`,
				`env.strategy.waves[2].afterTasks.wait: Invalid value: "721h": must be at most 720h`,
				`env.strategy.waves[3].afterTasks: Required value: name approvals, conditions, a wait or checks: without them there is ` +
					`nothing to wait for`,
			},
		},
		"checks of a wave beside those of its last step": {
			edit: strategy(func(s *shipper.RolloutStrategy) {
				s.Steps[len(s.Steps)-1].Checks = []shipper.StepCheck{{Check: "errors"}}
				checks := []shipper.StepCheck{{Check: "errors"}, {Check: "latency"}, {Check: "other", Name: "latency"}, {}}
				s.Waves = []shipper.Wave{
					{Name: "a", ClusterSelector: tier("a"), AfterTasks: &shipper.WaveTasks{Checks: []shipper.StepCheck{{Check: "latency"}}}},
					{Name: "b", ClusterSelector: tier("b"), AfterTasks: &shipper.WaveTasks{Checks: checks}}, {Name: "c"},
				}
			}),
			want: []string{
				`env.strategy.waves[1].afterTasks.checks[0].name: Invalid value: "errors": another check of the step, or of the strategy, has ` +
					`this name: give this one a name of its own`,
				`env.strategy.waves[1].afterTasks.checks[2].name: Invalid value: "latency": another check of the step, or of the strategy, has ` +
					`this name: give this one a name of its own`,
				`env.strategy.waves[1].afterTasks.checks[3].check: Required value: name a Check`,
			},
		},
		"how many clusters may fail": {edit: strategy(func(s *shipper.RolloutStrategy) {
			s.ProgressDeadline, s.MaxFailures = "10m", bounded("10%")
			s.Waves = []shipper.Wave{{Name: "a", ClusterSelector: tier("a"), MaxFailures: bounded("0")}, {Name: "b", MaxFailures: bounded("100")}}
		})},
		"none may fail, which needs no deadline": {edit: strategy(func(s *shipper.RolloutStrategy) {
			s.MaxFailures, s.Waves = bounded("0"), []shipper.Wave{{Name: "a", MaxFailures: bounded("0%")}}
		})},
		"failures without a deadline": {
			edit: strategy(func(s *shipper.RolloutStrategy) { s.Waves = []shipper.Wave{{Name: "a", MaxFailures: bounded("1")}} }),
			want: []string{"env.strategy.progressDeadline: Required value: maxFailures counts the clusters that miss it: write " +
				"progressDeadline: 10m, or leave maxFailures out"},
		},
		"failures without waves": {
			edit: strategy(func(s *shipper.RolloutStrategy) { s.ProgressDeadline, s.MaxFailures = "10m", bounded("1") }),
			want: []string{"env.strategy.maxFailures: Forbidden: only with waves: without them all clusters take each step together"},
		},
		"failures that are out of bounds": {
			edit: strategy(func(s *shipper.RolloutStrategy) {
				s.ProgressDeadline, s.MaxFailures = "10m", bounded("-1")
				s.Waves = []shipper.Wave{
					{Name: "a", ClusterSelector: tier("a"), MaxFailures: bounded("101%")},
					{Name: "b", ClusterSelector: tier("b"), MaxFailures: bounded("101")}, {Name: "c", MaxFailures: bounded("some")},
				}
			}),
			want: []string{
				"env.strategy.maxFailures: Invalid value: -1: a number of clusters that may fail is from 0 to 100",
				`env.strategy.waves[0].maxFailures: Invalid value: "101%": write a number of clusters such as 1, or a percentage of them from ` +
					"0% to 100%",
				"env.strategy.waves[1].maxFailures: Invalid value: 101: a number of clusters that may fail is from 0 to 100",
				`env.strategy.waves[2].maxFailures: Invalid value: "some": write a number of clusters such as 1, or a percentage of them from ` +
					"0% to 100%",
			},
		},
		"an unknown advance": {
			edit: strategy(func(s *shipper.RolloutStrategy) { s.Advance, s.Waves = "Never", []shipper.Wave{{Name: "a"}} }),
			want: []string{`env.strategy.advance: Unsupported value: "Never": supported values: "Manual", "Automatic"`},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got []string
			for _, err := range templatecheck.Validate(env(tc.edit), field.NewPath("env")) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
