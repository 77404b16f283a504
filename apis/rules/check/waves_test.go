// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// byWaves is canary in three waves, the second without clusters.
func byWaves(wave, step int32) *shipper.Release {
	rel := canary()
	rel.Annotations[shipper.ReleaseClustersAnnotation], rel.Annotations[shipper.ReleaseWavesAnnotation] = "a,b", "a=0,b=2"
	tasks := &shipper.WaveTasks{Wait: "1h", Checks: []shipper.StepCheck{{Check: "slow"}}}
	s := rel.Spec.Environment.Strategy
	s.Waves = []shipper.Wave{{Name: "canary", AfterTasks: tasks}, {Name: "none", AfterTasks: tasks}, {Name: "rest"}}
	s.Steps[2].Checks = []shipper.StepCheck{{Check: "own"}}
	rel.Spec.TargetWave, rel.Spec.TargetStep = &wave, step
	return rel
}

func TestAWaveIsCheckedAtItsEndInItsClusters(t *testing.T) {
	for sentence, tc := range map[string]struct {
		wave, step int32
		want       []string
	}{
		"at the step before, by the step's and the strategy's": {0, 1, []string{"latency", "errors"}},
		"at its end, by the step's and its own":                {0, 2, []string{"own", "slow"}},
		"without clusters, by none":                            {1, 2, nil},
		"at the end of the last wave, by the step's":           {2, 2, []string{"own"}},
	} {
		var got []string
		for _, c := range check.Of(byWaves(tc.wave, tc.step)) {
			got = append(got, c.NameInStep())
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
	spec, err := check.Plan(check.Request{Release: byWaves(0, 2), Find: known(map[string]shipper.CheckSpec{
		"shop/own": prometheusCheck("x"), "shop/slow": prometheusCheck("x"),
	})}, noon)
	if err != nil {
		t.Fatal(err)
	}
	type run struct {
		Clusters []string
		Counts   []int32
	}
	want, got := run{[]string{"a"}, []int32{60, 60}}, run{Clusters: spec.Clusters}
	for _, c := range spec.Checks {
		got.Counts = append(got.Counts, c.Count)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("it measures each minute while the wave waits (-want +got):\n%s", diff)
	}
}

func TestChecksOfWavesCount(t *testing.T) {
	strategy := func(dry bool) *shipper.RolloutStrategy {
		return &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{{}}, Waves: []shipper.Wave{
			{AfterTasks: &shipper.WaveTasks{Checks: []shipper.StepCheck{{Check: "errors", DryRun: dry}}}}, {},
		}}
	}
	for dry, counts := range map[bool]bool{false: true, true: false} {
		s := strategy(dry)
		if got := check.Counts(s); got != counts || !s.HasChecks() || len(s.AllChecks()) != 1 {
			t.Errorf("dry %t: counts %t, %t, %v", dry, got, s.HasChecks(), s.AllChecks())
		}
	}
}

func TestResourcesHaveNoTestsOfAChart(t *testing.T) {
	rel := byWaves(0, 0)
	rel.Spec.Environment.Resources, rel.Spec.Environment.Strategy.Steps, rel.Spec.Environment.Strategy.Checks = &shipper.Resources{}, nil, nil
	rel.Spec.Environment.Strategy.Waves[0].AfterTasks.Wait = ""
	find := known(map[string]shipper.CheckSpec{"shop/slow": {Tests: &shipper.TestsCheck{}}})
	const want = "check slow: Check shop/slow runs tests of a chart, and resources have none: use prometheus, http or job"
	if _, err := check.Plan(check.Request{Release: rel, Find: find}, noon); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	spec, err := check.Plan(check.Request{Release: rel, Find: known(map[string]shipper.CheckSpec{"shop/slow": prometheusCheck("x")})}, noon)
	if err != nil || len(spec.Checks) != 1 || spec.Checks[0].Count != 1 {
		t.Errorf("it measures once without a wait: %+v, %v", spec, err)
	}
}
