// SPDX-License-Identifier: Apache-2.0

package block

import (
	"fmt"
	"math/rand/v2"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestScope(t *testing.T) {
	label := func(kv ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{kv[0]: kv[1]}}
	}
	all := func(chart string) *shipper.RolloutBlockScope {
		return &shipper.RolloutBlockScope{
			Applications: label("tier", "now"), Charts: []string{chart}, Regions: []string{"eu"}, Clusters: []string{"eu-1"},
		}
	}
	none := env("nginx", "us")
	none.ClusterRequirements.Regions = append(none.ClusterRequirements.Regions,
		shipper.RegionRequirement{Name: "eu", Replicas: ptr.To[int32](0)})
	runs := rel(0, env("nginx", "eu"), completed, in("eu-1"))
	for sentence, tc := range map[string]struct {
		scope  *shipper.RolloutBlockScope
		change Change
		want   bool
	}{
		"no scope is everything":       {nil, shop().Edit(nil, env("nginx", "eu")), true},
		"an empty scope is everything": {&shipper.RolloutBlockScope{}, shop().Edit(nil, env("nginx", "eu")), true},

		"a chart by its name": {&shipper.RolloutBlockScope{Charts: []string{"redis", "nginx"}}, shop().Edit(nil, env("nginx", "eu")), true},
		"another chart":       {&shipper.RolloutBlockScope{Charts: []string{"redis"}}, shop().Edit(nil, env("nginx", "eu")), false},
		"a chart that is left": {
			&shipper.RolloutBlockScope{Charts: []string{"nginx"}}, shop(runs).Edit(env("nginx", "eu"), env("redis", "eu")), true,
		},
		"a chart that is come to": {
			&shipper.RolloutBlockScope{Charts: []string{"redis"}}, shop(runs).Edit(env("nginx", "eu"), env("redis", "eu")), true,
		},

		"a region that is wanted": {
			&shipper.RolloutBlockScope{Regions: []string{"eu"}}, shop().Edit(nil, env("nginx", "us", "eu")), true,
		},
		"another region":                   {&shipper.RolloutBlockScope{Regions: []string{"eu"}}, shop().Edit(nil, env("nginx", "us")), false},
		"a region of which none is wanted": {&shipper.RolloutBlockScope{Regions: []string{"eu"}}, shop().Edit(nil, none), false},
		"a region that is left": {
			&shipper.RolloutBlockScope{Regions: []string{"eu"}}, shop(runs).Edit(env("nginx", "eu"), env("nginx", "us")), true,
		},
		"a region that a rollout leaves": {
			&shipper.RolloutBlockScope{Regions: []string{"eu"}}, shop(runs, rel(1, env("nginx", "us"))).Rollout(), true,
		},
		"a region that was left before that": {
			&shipper.RolloutBlockScope{Regions: []string{"eu"}},
			shop(runs, rel(1, env("nginx", "us"), completed), rel(2, env("x", "us"))).Rollout(), false,
		},

		"a region of a cluster that a placement would choose": {
			&shipper.RolloutBlockScope{Regions: []string{"eu"}}, shop().Edit(nil, fixed("eu-1")), true,
		},
		"another region than those of the clusters that a placement would choose": {
			&shipper.RolloutBlockScope{Regions: []string{"eu"}}, shop().Edit(nil, fixed("us-1")), false,
		},
		"a region of a cluster that a placement has chosen": {
			&shipper.RolloutBlockScope{Regions: []string{"eu"}}, shop(rel(0, fixed("us-1", "eu-1"), in("eu-1,us-1"))).Rollout(), true,
		},
		"another region than those of the clusters that a placement has chosen": {
			&shipper.RolloutBlockScope{Regions: []string{"eu"}}, shop(rel(0, fixed("us-1"), in("us-1"))).Rollout(), false,
		},
		"a region when a placement leaves it": {
			&shipper.RolloutBlockScope{Regions: []string{"eu"}},
			shop(rel(0, fixed("eu-1"), completed, in("eu-1"))).Edit(fixed("eu-1"), fixed("us-1")), true,
		},
		"a region when nothing fits a placement": {
			&shipper.RolloutBlockScope{Regions: []string{"eu"}}, shop().Edit(nil, fixed("mars-1")), true,
		},
		"a region when a placement wants no cluster": {
			&shipper.RolloutBlockScope{Regions: []string{"eu"}}, shop().Edit(nil, picked(0)), false,
		},
		"a region when a cluster that a placement has chosen is gone": {
			&shipper.RolloutBlockScope{Regions: []string{"eu"}}, shop(rel(0, fixed("us-2"), in("us-2"))).Rollout(), true,
		},
		"a region when the clusters of a placement are unknown": {
			&shipper.RolloutBlockScope{Regions: []string{"eu"}}, App{Name: "shop"}.Edit(nil, fixed("us-1")), true,
		},
		"a cluster that a placement would choose": {
			&shipper.RolloutBlockScope{Clusters: []string{"eu-1"}}, shop().Edit(nil, fixed("eu-1")), true,
		},
		"a cluster that a placement would not choose": {
			&shipper.RolloutBlockScope{Clusters: []string{"eu-1"}}, shop().Edit(nil, fixed("us-1")), false,
		},
		"a cluster when nothing fits a placement": {
			&shipper.RolloutBlockScope{Clusters: []string{"eu-1"}}, shop().Edit(nil, fixed("mars-1")), true,
		},
		"a cluster when a placement wants none": {
			&shipper.RolloutBlockScope{Clusters: []string{"eu-1"}}, shop().Edit(nil, picked(0)), false,
		},

		"a cluster that would be chosen": {
			&shipper.RolloutBlockScope{Clusters: []string{"eu-1"}}, shop().Edit(nil, env("nginx", "eu")), true,
		},
		"a cluster that would not be chosen": {
			&shipper.RolloutBlockScope{Clusters: []string{"us-1"}}, shop().Edit(nil, env("nginx", "eu")), false,
		},
		"a cluster where it runs": {
			&shipper.RolloutBlockScope{Clusters: []string{"eu-1"}}, shop(runs).Edit(env("nginx", "eu"), env("nginx", "us")), true,
		},
		"a cluster where it is rolled out": {
			&shipper.RolloutBlockScope{Clusters: []string{"eu-1"}}, shop(runs, rel(1, env("nginx", "us"), in("us-1"))).Rollout(), true,
		},
		"a cluster where it is not rolled out": {&shipper.RolloutBlockScope{Clusters: []string{"eu-2"}}, shop(runs).Rollout(), false},
		"a cluster when none can be chosen": {
			&shipper.RolloutBlockScope{Clusters: []string{"eu-1"}}, shop().Edit(nil, env("nginx", "mars")), true,
		},
		"a cluster when the clusters are unknown": {&shipper.RolloutBlockScope{Clusters: []string{"eu-1"}}, Change{}, true},

		"a label that the Application has": {
			&shipper.RolloutBlockScope{Applications: label("tier", "now")}, shop().Edit(nil, env("nginx")), true,
		},
		"a label that it does not have": {
			&shipper.RolloutBlockScope{Applications: label("tier", "then")}, shop().Edit(nil, env("nginx")), false,
		},
		"a label that it had when its running Release was created": {
			&shipper.RolloutBlockScope{Applications: label("tier", "then")}, shop(runs).Edit(env("a"), env("b")), true,
		},
		"a label that Shipper gives to Releases": {
			&shipper.RolloutBlockScope{Applications: label(shipper.AppLabel, "shop")}, shop(runs).Rollout(), false,
		},
		"a label when the labels are unknown": {&shipper.RolloutBlockScope{Applications: label("tier", "now")}, Change{}, false},

		"all parts match": {
			all("nginx"),
			shop().Edit(nil, env("nginx", "eu")), true,
		},
		"all parts but one match": {
			all("redis"),
			shop().Edit(nil, env("nginx", "eu")), false,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			b := aBlock("frontend", "freeze")
			b.Spec.Scope = tc.scope
			if got := len(Judge([]*shipper.RolloutBlock{b}, nil, tc.change, noon).Effective) == 1; got != tc.want {
				t.Errorf("it is in the way: %v, want %v", got, tc.want)
			}
		})
	}
}

// Selectors select as everywhere else in Kubernetes.
func TestSelectorsAreThoseOfKubernetes(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	some := func(of ...string) string { return of[r.IntN(len(of))] }
	set := func() map[string]string {
		out := map[string]string{}
		for range r.IntN(3) {
			out[some("a", "b", "c")] = some("x", "y", "")
		}
		return out
	}
	for range 20_000 {
		selector := &metav1.LabelSelector{MatchLabels: set()}
		for range r.IntN(3) {
			operator := metav1.LabelSelectorOperator(some("In", "NotIn", "Exists", "DoesNotExist"))
			e := metav1.LabelSelectorRequirement{Key: some("a", "b", "c"), Operator: operator}
			if e.Operator == "In" || e.Operator == "NotIn" {
				e.Values = []string{some("x", "y"), some("x", "")}
			}
			selector.MatchExpressions = append(selector.MatchExpressions, e)
		}
		theirs, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		has := set()
		if got, want := matches(selector, has), theirs.Matches(labels.Set(has)); got != want {
			t.Fatalf("%s selects %v: %v, want %v", metav1.FormatLabelSelector(selector), has, got, want)
		}
	}
	for sentence, e := range map[string]metav1.LabelSelectorRequirement{
		"in nothing": {Key: "a", Operator: "In"}, "no operator": {Key: "a", Operator: "Like", Values: []string{"x"}},
	} {
		if !matches(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{e}}, nil) {
			t.Errorf("what cannot be read lets pass: %s", sentence)
		}
	}
}

func TestWhatABlockLetsPass(t *testing.T) {
	const abort, retreat, rollback = shipper.RolloutBlockAbort, shipper.RolloutBlockRetreat, shipper.RolloutBlockRollback
	kinds := func(of ...shipper.RolloutBlockChange) []shipper.RolloutBlockChange { return of }
	for _, tc := range []struct {
		allow, is []shipper.RolloutBlockChange
		passes    bool
	}{
		{nil, nil, false}, {nil, kinds(abort, retreat, rollback), false}, {kinds(abort, retreat, rollback), nil, false},
		{kinds(abort), kinds(abort), true}, {kinds(abort), kinds(retreat), false}, {kinds(abort), kinds(rollback), false},
		{kinds(retreat), kinds(abort), false}, {kinds(retreat), kinds(retreat), true}, {kinds(retreat), kinds(rollback), false},
		{kinds(rollback), kinds(abort), false}, {kinds(rollback), kinds(retreat), false}, {kinds(rollback), kinds(rollback), true},
		{kinds(rollback), kinds(abort, rollback), true}, {kinds(abort, retreat), kinds(rollback), false},
	} {
		t.Run(fmt.Sprintf("%v of %v", tc.is, tc.allow), func(t *testing.T) {
			b := aBlock("frontend", "freeze")
			b.Spec.Allow = tc.allow
			c := Change{}.And(tc.is...)
			if got := !Judge([]*shipper.RolloutBlock{b}, nil, c, noon).Blocked(); got != tc.passes {
				t.Errorf("it passes: %v, want %v", got, tc.passes)
			}
		})
	}
}

func TestConditionsAreAskedLast(t *testing.T) {
	b := aBlock("frontend", "freeze")
	b.Spec.MatchConditions = []shipper.RolloutBlockMatchCondition{{Name: "x", Expression: "true"}}
	judge := func(c Change) bool { return Judge([]*shipper.RolloutBlock{b}, nil, c, noon).Blocked() }
	asked, answer := 0, true
	c := Change{Matches: func(of *shipper.RolloutBlock) bool {
		if asked++; of != b {
			t.Errorf("asked about %v", of)
		}
		return answer
	}}
	if !judge(c) || asked != 1 {
		t.Errorf("what matches passes; asked %d times", asked)
	}
	if answer = false; judge(c) {
		t.Error("what does not match is in the way")
	}
	if judge(Change{}) {
		t.Error("a block with matchConditions stops a change without a request")
	}
	asked, b.Spec.Scope = 0, &shipper.RolloutBlockScope{Charts: []string{"other"}}
	if judge(c) || asked != 0 {
		t.Errorf("what is out of scope was asked about %d times", asked)
	}
	b.Spec.Scope, b.Spec.MatchConditions = nil, nil
	if !judge(c) || asked != 0 {
		t.Errorf("a block without conditions was asked about %d times", asked)
	}
}
