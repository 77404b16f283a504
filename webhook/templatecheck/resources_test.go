// SPDX-License-Identifier: Apache-2.0

package templatecheck_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/templatecheck"
)

// ofResources is a valid template with resources, changed by edit.
func ofResources(edit func(*shipper.ReleaseEnvironment)) *shipper.ReleaseEnvironment {
	env := &shipper.ReleaseEnvironment{
		Resources:           &shipper.Resources{Select: []shipper.ResourceSelector{{Kind: "ConfigMap", Name: "web"}}},
		ClusterRequirements: shipper.ClusterRequirements{Regions: []shipper.RegionRequirement{{Name: "local"}}},
		Strategy:            &shipper.RolloutStrategy{},
	}
	if edit != nil {
		edit(env)
	}
	return env
}

// selecting is ofResources with one selector.
func selecting(s shipper.ResourceSelector) func(*shipper.ReleaseEnvironment) {
	return func(env *shipper.ReleaseEnvironment) { env.Resources.Select = []shipper.ResourceSelector{s} }
}

func rolling(unavailable, surge intstr.IntOrString) func(*shipper.ReleaseEnvironment) {
	return func(env *shipper.ReleaseEnvironment) {
		env.Strategy.Rolling = &shipper.RollingClusters{MaxUnavailable: &unavailable, MaxSurge: &surge}
	}
}

func TestTemplatesWithResources(t *testing.T) {
	number, text := intstr.FromInt32, intstr.FromString
	labels := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	for name, tc := range map[string]struct {
		edit func(*shipper.ReleaseEnvironment)
		want string
	}{
		"the smallest": {},
		"a placement is as good as regions": {edit: func(env *shipper.ReleaseEnvironment) {
			env.ClusterRequirements = shipper.ClusterRequirements{Placement: &shipper.Placement{}}
		}},
		"a chart besides": {
			func(env *shipper.ReleaseEnvironment) { env.Chart.Name = "nginx" },
			"t.resources: Forbidden: name a chart or resources: exactly one of the two",
		},
		"neither": {
			func(env *shipper.ReleaseEnvironment) { env.Resources = nil },
			"t.chart: Required value: name a chart or resources: exactly one of the two",
		},
		"values": {
			func(env *shipper.ReleaseEnvironment) { env.Values = &shipper.ChartValues{} },
			"t.values: Forbidden: only for a chart: resources are placed as they are",
		},
		"steps": {
			func(env *shipper.ReleaseEnvironment) { env.Strategy.Steps = []shipper.RolloutStrategyStep{{}} },
			"t.strategy.steps: Forbidden: resources have no capacity and traffic to step through: " +
				"rolling says how many clusters change at the same time",
		},
		"no strategy": {
			func(env *shipper.ReleaseEnvironment) { env.Strategy = nil },
			"t.strategy: Required value: is filled in by Shipper's mutating webhook: write strategy: {}",
		},
		"Retreat": {
			func(env *shipper.ReleaseEnvironment) { env.Strategy.OnFailure = shipper.OnFailureRetreat },
			`t.strategy.onFailure: Invalid value: "Retreat": resources have no step to go back to: use Abort`,
		},
		"what only a chart's strategy has": {
			func(env *shipper.ReleaseEnvironment) {
				env.Strategy = &shipper.RolloutStrategy{
					Checks: []shipper.StepCheck{{Check: "slow"}}, PreviewWhenIdle: "None", FirstRelease: "Steps", OnFailure: "Hold",
				}
			},
			"t.strategy.checks: Forbidden: resources have no steps to check: afterTasks of a wave have checks\n" +
				"t.strategy.previewWhenIdle: Forbidden: resources have no preview Service\n" +
				"t.strategy.firstRelease: Forbidden: resources have no steps to begin with",
		},
		"waves": {edit: func(env *shipper.ReleaseEnvironment) {
			env.Strategy = &shipper.RolloutStrategy{
				Advance: shipper.AdvanceManual, MaxFailures: new(number(1)), ProgressDeadline: "10m", OnFailure: shipper.OnFailureRetreat,
				Rolling: &shipper.RollingClusters{MaxSurge: new(number(1))}, Waves: []shipper.Wave{
					{Name: "canary", ClusterSelector: labels, AfterTasks: &shipper.WaveTasks{Approvals: 1, Wait: "1h",
						Conditions: []string{"example.com/Verified"}, Checks: []shipper.StepCheck{{Check: "errors"}}}},
					{Name: "rest", MaxConcurrency: new(number(2))},
				},
			}
		}},
		"waves that are wrong": {
			func(env *shipper.ReleaseEnvironment) {
				env.Strategy = &shipper.RolloutStrategy{
					Rolling: &shipper.RollingClusters{MaxUnavailable: new(number(1))}, MaxFailures: new(number(1)),
					Waves: []shipper.Wave{{Name: "rest", MaxConcurrency: new(number(0)), AfterTasks: &shipper.WaveTasks{Wait: "1h"}}},
				}
			},
			`t.strategy.waves[0].maxConcurrency: Invalid value: "0": then no cluster could ever change: at least 1` + "\n" +
				"t.strategy.waves[0].afterTasks: Forbidden: not on the last wave: no wave follows that could wait\n" +
				"t.strategy.progressDeadline: Required value: maxFailures counts the clusters that miss it: write progressDeadline: 10m, or " +
				"leave maxFailures out\n" +
				"t.strategy.rolling.maxUnavailable: Forbidden: not with waves: maxConcurrency of each wave bounds how many of its clusters " +
				"change at the same time",
		},
		"what only waves have": {
			func(env *shipper.ReleaseEnvironment) {
				env.Strategy = &shipper.RolloutStrategy{Advance: shipper.AdvanceAutomatic, MaxFailures: new(number(1))}
			},
			"t.strategy.advance: Forbidden: only with waves\n" +
				"t.strategy.maxFailures: Forbidden: only with waves: without them one object that does not become ready fails the rollout",
		},
		"rolling bounds":      {edit: rolling(number(1), text("100%"))},
		"no cluster is added": {edit: rolling(text("1%"), number(0))},
		"no cluster may be changed, by a percentage": {
			rolling(text("0%"), number(1)),
			`t.strategy.rolling.maxUnavailable: Invalid value: "0%": objects are changed in place: at least 1`,
		},
		"no cluster may be changed, by a number": {
			rolling(number(0), number(1)),
			`t.strategy.rolling.maxUnavailable: Invalid value: "0": objects are changed in place: at least 1`,
		},
		"more than all clusters": {
			rolling(text("101%"), number(1)),
			`t.strategy.rolling.maxUnavailable: Invalid value: "101%": write a number of clusters such as 1, or a percentage ` +
				"of them from 0% to 100%",
		},
		"a bound that is no number": {
			rolling(number(1), text("half")),
			`t.strategy.rolling.maxSurge: Invalid value: "half": write a number of clusters such as 1, or a percentage of them from 0% to 100%`,
		},
		"a bound that is negative": {
			rolling(number(-1), number(1)),
			`t.strategy.rolling.maxUnavailable: Invalid value: -1: a number of clusters is from 0 to 1000`,
		},
		"no selector": {
			func(env *shipper.ReleaseEnvironment) { env.Resources.Select = nil },
			"t.resources.select: Required value: select at least one object",
		},
		"a name and labels": {
			selecting(shipper.ResourceSelector{Kind: "ConfigMap", Name: "a", LabelSelector: labels}),
			"t.resources.select[0].labelSelector: Forbidden: give a name or a labelSelector, not both",
		},
		"a kind with its group": {
			selecting(shipper.ResourceSelector{Kind: "apps/Deployment"}),
			`t.resources.select[0].kind: Invalid value: "apps/Deployment": must be a kind such as ConfigMap, with a capital and without an s: ` +
				"group and version are fields beside it",
		},
		"a group with its version": {
			selecting(shipper.ResourceSelector{Kind: "Deployment", Group: "apps/v1"}),
			`t.resources.select[0].group: Invalid value: "apps/v1": a group has no version in it: write group: apps and, only if you need it, ` +
				"version: v1",
		},
		"a name that leaves its URL": {
			selecting(shipper.ResourceSelector{Kind: "ConfigMap", Name: "../a"}),
			`t.resources.select[0].name: Invalid value: "../a": may not contain '/'`,
		},
		"content of a ConfigMap": {
			selecting(shipper.ResourceSelector{Kind: "ConfigMap", Content: "All"}),
			"t.resources.select[0].content: Forbidden: only for Namespaces",
		},
		"content of a Namespace": {edit: selecting(shipper.ResourceSelector{Kind: "Namespace", Name: "a", Content: "None"})},
		"a Namespace in a namespace": {
			selecting(shipper.ResourceSelector{Kind: "Namespace", Namespace: "a", LabelSelector: labels}),
			"t.resources.select[0].namespace: Forbidden: a Namespace is in no namespace: give its name in name",
		},
		"all Namespaces by nothing": {
			selecting(shipper.ResourceSelector{Kind: "Namespace", Content: "None"}),
			"t.resources.select[0].labelSelector: Required value: name one Namespace in name, or write labelSelector: {} for all",
		},
		"all Secrets by nothing": {
			selecting(shipper.ResourceSelector{Kind: "Secret"}),
			"t.resources.select[0].labelSelector: Required value: name one Secret in name, or write labelSelector: {} for all",
		},
		"all Secrets by a labelSelector": {edit: selecting(shipper.ResourceSelector{Kind: "Secret", LabelSelector: &metav1.LabelSelector{}})},
		"Secrets of another group":       {edit: selecting(shipper.ResourceSelector{Group: "example.com", Kind: "Secret"})},
		"all ConfigMaps":                 {edit: selecting(shipper.ResourceSelector{Kind: "ConfigMap"})},
		"an operator that is none": {
			selecting(shipper.ResourceSelector{Kind: "ConfigMap", LabelSelector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "NotExists"}},
			}}),
			`t.resources.select[0].labelSelector.matchExpressions[0].operator: Invalid value: "NotExists": not a valid selector operator`,
		},
		"a rule for Secrets": {
			func(env *shipper.ReleaseEnvironment) {
				env.Resources.Ready = []shipper.ReadyRule{{Kind: "Secret", Expression: "object.data.a == ''"}}
			},
			"t.resources.ready[0].kind: Forbidden: Secrets are not judged by rules: an error of the expression could show their values in a status",
		},
		"a rule without an expression": {
			func(env *shipper.ReleaseEnvironment) { env.Resources.Ready = []shipper.ReadyRule{{Kind: "Widget"}} },
			"t.resources.ready[0].expression: Required value: write CEL over object, such as object.status.ready == true",
		},
		"conflicts of a merge": {
			func(env *shipper.ReleaseEnvironment) {
				env.Apply = &shipper.Apply{Type: shipper.ApplyClientSide, ForceConflicts: new(false)}
			},
			"t.apply.forceConflicts: Forbidden: only with type ServerSide: ClientSide has no conflicts of field managers",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range templatecheck.Validate(ofResources(tc.edit), field.NewPath("t")) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWarningsNeedNoSteps(t *testing.T) {
	env := ofResources(func(env *shipper.ReleaseEnvironment) { env.Strategy.OnFailure = shipper.OnFailureAbort })
	want := []string{"onFailure is Abort and has no effect: nothing fails without progressDeadline"}
	if diff := cmp.Diff(want, templatecheck.Warnings(env)); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	env.Strategy = nil
	if got := templatecheck.Warnings(env); got != nil {
		t.Errorf("warnings without a strategy: %q", got)
	}
}
