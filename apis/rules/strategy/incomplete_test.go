// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestAReleaseOfAnUnfilledPlacementMayHaveLostItsTargets(t *testing.T) {
	for sentence, tc := range map[string]struct {
		scheduled *shipper.Condition
		clusters  string
		want      bool
	}{
		"its status was lost":          {nil, "a", true},
		"it was scheduled":             {&shipper.Condition{Status: "True"}, "a", true},
		"it was scheduled in part":     {&shipper.Condition{Status: "False", Reason: shipper.PlacementUnfulfilled}, "a", true},
		"no cluster was found for it":  {&shipper.Condition{Status: "False", Reason: shipper.PlacementUnfulfilled}, "", false},
		"its targets were never there": {&shipper.Condition{Status: "False", Reason: shipper.TargetsFailed}, "a", false},
	} {
		rel := &shipper.Release{}
		rel.Annotations = map[string]string{shipper.ReleaseClustersAnnotation: tc.clusters}
		if tc.scheduled != nil {
			tc.scheduled.Type = shipper.ReleaseScheduled
			rel.Status.Conditions = []shipper.Condition{*tc.scheduled}
		}
		if got := (strategy.Release{Release: rel}).Lost(); got != tc.want {
			t.Errorf("%s: lost is %t", sentence, got)
		}
	}
}

func TestAStepNamesAllClustersThatLackSomething(t *testing.T) {
	incomplete := func(sentence string, plan strategy.Plan, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, plan.Step.Incomplete); diff != "" || !plan.Step.Begun {
			t.Errorf("%s: begun is %t, -want +got:\n%s", sentence, plan.Step.Begun, diff)
		}
		others := len(want) == 0
		if got := plan.Step.ConvergedBut(nil); got != others {
			t.Errorf("%s: everything is there: %t", sentence, got)
		}
		if !plan.Step.ConvergedBut(want) {
			t.Errorf("%s: something else is lacking", sentence)
		}
	}
	a := settled(t, 1, allIn, vanguard)
	incomplete("the step is achieved", a.replan())
	a.down["b"] = true
	a.work()
	incomplete("a cluster does not answer", a.replan(), "b")
	a.down["b"] = false
	a.work()
	a.newest().Annotations[shipper.ReleaseClustersAnnotation] = "a,b,c"
	incomplete("a cluster joins", a.replan(), "c")
	a.newest().Annotations[shipper.ReleaseClustersAnnotation] = "a,b"
	a.releases[0].Release.Annotations[shipper.ReleaseClustersAnnotation] = "a,b,d"
	incomplete("a cluster joins the incumbent", a.replan(), "d")
	a.releases[0].Release.Annotations[shipper.ReleaseClustersAnnotation] = "a,b"
	a.newest().Spec.TargetStep = 2
	incomplete("the next step begins", a.replan(), "a", "b")

	a.releases[1].Traffic = nil
	if step := a.replan().Step; step.Begun || step.ConvergedBut([]string{"a", "b"}) {
		t.Errorf("without targets: got %+v", step)
	}
}
