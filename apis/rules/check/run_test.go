// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// canary has a step without checks, one with an own check and that of the strategy, and a last one with that of the strategy alone.
func canary() *shipper.Release {
	s := &shipper.RolloutStrategy{
		Steps: []shipper.RolloutStrategyStep{{Name: "staging"}, {Name: "half", After: "10m"}, {Name: "full on"}},
	}
	s.Steps[1].Traffic.Contender, s.Steps[2].Traffic.Contender = 50, 100
	s.Steps[1].Checks = []shipper.StepCheck{{Check: "latency", DryRun: true}}
	s.Checks = []shipper.StepCheck{{Check: "shipper-checks/errors", Args: map[string]string{"slack": "0.1"}}}
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "u"}}
	rel.Spec.TargetStep, rel.Spec.Environment.Strategy = 1, s
	rel.Annotations = map[string]string{
		shipper.ReleaseMovedAnnotation:       `{"by":"ann","from":0,"to":1,"count":3}`,
		shipper.ReleaseChecksRetryAnnotation: "2", shipper.ReleaseClustersAnnotation: "a,b",
	}
	return rel
}

func known(specs map[string]shipper.CheckSpec) func(types.NamespacedName) *shipper.Check {
	return func(key types.NamespacedName) *shipper.Check {
		if spec, is := specs[key.String()]; is {
			return &shipper.Check{Spec: spec}
		}
		return nil
	}
}

func prometheusCheck(query string) shipper.CheckSpec {
	return shipper.CheckSpec{
		Args:       []shipper.CheckArgument{{Name: "slack", Default: new("0")}},
		Prometheus: &shipper.PrometheusCheck{Queries: map[string]shipper.CheckQuery{"new": shipper.CheckQuery(query)}}, Pass: "new < 1",
	}
}

func TestPlanCopiesTheChecksOfAStep(t *testing.T) {
	errors, latency := prometheusCheck("$(release)"), prometheusCheck("$(incumbent)")
	spec, err := check.Plan(check.Request{
		Release: canary(), Incumbent: "web-0", Shared: "shipper-checks", Last: 4,
		Find: known(map[string]shipper.CheckSpec{"shop/latency": latency, "shipper-checks/errors": errors}),
	}, noon)
	if err != nil {
		t.Fatal(err)
	}
	expected := &shipper.CheckTargetSpec{
		Run: 5, Step: 1, Move: 3, Retry: "2", StartTime: metav1.NewTime(noon), Incumbent: "web-0", Clusters: []string{"a", "b"},
		Checks: []shipper.CheckRun{
			{Name: "latency", From: "shop/latency", Args: map[string]string{"slack": "0"}, Count: 10, DryRun: true, Check: latency},
			{Name: "errors", From: "shipper-checks/errors", Args: map[string]string{"slack": "0.1"}, Count: 10, Check: errors},
		},
	}
	if diff := cmp.Diff(expected, spec); diff != "" {
		t.Error(diff)
	}
	target := &shipper.CheckTarget{Spec: *spec}
	target.OwnerReferences = []metav1.OwnerReference{{UID: "u"}}
	if rel := canary(); !check.Current(target, rel) {
		t.Error("the run is not that of its Release")
	}
	for change, edit := range map[string]func(*shipper.Release){
		"moved": func(r *shipper.Release) {
			r.Annotations[shipper.ReleaseMovedAnnotation] = `{"by":"ann","from":0,"to":1,"count":5}`
		},
		"another step":        func(r *shipper.Release) { r.Spec.TargetStep = 2 },
		"a retry":             func(r *shipper.Release) { r.Annotations[shipper.ReleaseChecksRetryAnnotation] = "3" },
		"another cluster":     func(r *shipper.Release) { r.Annotations[shipper.ReleaseClustersAnnotation] = "a,c" },
		"another of the name": func(r *shipper.Release) { r.UID = "v" },
	} {
		rel := canary()
		if edit(rel); check.Current(target, rel) {
			t.Errorf("the run is still that of the Release after: %s", change)
		}
	}
}

func TestPlanSaysWhatIsMissing(t *testing.T) {
	all := map[string]shipper.CheckSpec{"shop/latency": prometheusCheck("x"), "shipper-checks/errors": prometheusCheck("x")}
	plan := func(edit func(*check.Request)) string {
		r := check.Request{Release: canary(), Shared: "shipper-checks", Find: known(all)}
		edit(&r)
		if _, err := check.Plan(r, noon); err != nil {
			return err.Error()
		}
		return ""
	}
	many := ""
	for i := range 1001 {
		many += fmt.Sprintf("c%d,", i)
	}
	for is, expected := range map[string]string{
		plan(func(*check.Request) {}):                        "",
		plan(func(r *check.Request) { r.Find = known(nil) }): "check latency: there is no Check shop/latency",
		plan(func(r *check.Request) { r.Shared = "" }):       "check errors: a Check of another namespace cannot be named, except those of ",
		plan(func(r *check.Request) {
			r.Release.Spec.Environment.Strategy.Checks[0].Args = map[string]string{"slack": "$"}
		}): "check errors: argument slack: does not match the argument's pattern ^[A-Za-z0-9._:/-]{0,253}$",
		plan(func(r *check.Request) {
			r.Release.Annotations[shipper.ReleaseClustersAnnotation] = many
		}): "2 checks in 1001 clusters have 2002 results, and at most 2000 are kept: " +
			"use over: Fleet with prometheus, or fewer checks",
	} {
		if is != expected {
			t.Errorf("%q, not %q", is, expected)
		}
	}
}

// target is a run of errors and, dry, latency in two clusters.
func target(incumbent string, results ...shipper.CheckResult) *shipper.CheckTarget {
	out := &shipper.CheckTarget{Spec: shipper.CheckTargetSpec{
		Run: 2, Clusters: []string{"eu", "us"}, Incumbent: incumbent, StartTime: metav1.NewTime(noon),
		Checks: []shipper.CheckRun{
			{Name: "errors", Count: 3, Check: prometheusCheck("$(release)")},
			{Name: "latency", Count: 3, DryRun: true, Check: prometheusCheck("$(release)")},
		},
	}}
	out.Status.Run, out.Status.Results = 2, results
	return out
}

func in(cluster string, r shipper.CheckResult) shipper.CheckResult {
	r.Cluster = cluster
	return r
}

func TestStateOf(t *testing.T) {
	latency := runOf(3)
	latency.Name = "latency"
	good, half := story(runOf(3), "ppp"), story(runOf(3), "pp")
	bad, unknown, dry := story(runOf(3), "pf"), story(runOf(3), "i"), in("eu", story(latency, "f"))
	failed := shipper.ReleaseCheck{Name: "errors", Phase: shipper.CheckHasFailed, Cluster: "us", Measured: 2, Count: 3, Value: "new = 1"}
	waits := shipper.ReleaseCheck{Name: "latency", Phase: shipper.CheckPending, Cluster: "eu", Count: 3, DryRun: true}
	for sentence, tc := range map[string]struct {
		target   *shipper.CheckTarget
		expected check.State
	}{
		"nothing is measured": {target("web-0"), check.State{
			Checks:  []shipper.ReleaseCheck{{Name: "errors", Phase: shipper.CheckPending, Cluster: "eu", Count: 3}, waits},
			Awaited: "check errors has 0 of 3 results in eu",
		}},
		"one cluster has passed, another not yet": {target("web-0", in("eu", good), in("us", half)), check.State{
			Checks: []shipper.ReleaseCheck{
				{Name: "errors", Phase: shipper.CheckRunning, Cluster: "us", Measured: 2, Count: 3, Value: "new = 1"}, waits,
			},
			Awaited: "check errors has 2 of 3 results in us",
		}},
		"all have passed, and what is dry does not count": {target("web-0", in("eu", good), in("us", good), dry), check.State{
			Checks: []shipper.ReleaseCheck{
				{Name: "errors", Phase: shipper.CheckPassed, Cluster: "eu", Measured: 3, Count: 3, Value: "new = 2"},
				{Name: "latency", Phase: shipper.CheckHasFailed, Cluster: "eu", Measured: 1, Count: 3, Value: "new = 0", DryRun: true},
			},
			Passed: true,
		}},
		"one cluster has failed": {target("web-0", in("eu", good), in("us", bad)), check.State{
			Checks:  []shipper.ReleaseCheck{failed, waits},
			Failed:  &check.Finding{Check: "errors", Cluster: "us", Message: "new = 1 (1 of 2 measurements failed)", Run: 2},
			Awaited: "check errors has failed in us: new = 1 (1 of 2 measurements failed)",
		}},
		"a failure is worse than what is undecided": {target("web-0", in("eu", unknown), in("us", bad)), check.State{
			Checks:  []shipper.ReleaseCheck{failed, waits},
			Failed:  &check.Finding{Check: "errors", Cluster: "us", Message: "new = 1 (1 of 2 measurements failed)", Run: 2},
			Awaited: "check errors has failed in us: new = 1 (1 of 2 measurements failed)",
		}},
		"one is undecided": {target("web-0", in("eu", unknown), in("us", good)), check.State{
			Checks: []shipper.ReleaseCheck{
				{Name: "errors", Phase: shipper.CheckUndecided, Cluster: "eu", Count: 3, Value: "new = 0"}, waits,
			},
			Undecided: &check.Finding{Check: "errors", Cluster: "eu", Message: "no verdict after 1 measurement, the last: new = 0", Run: 2},
			Awaited:   "check errors is undecided in eu: no verdict after 1 measurement, the last: new = 0",
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.expected, check.StateOf(tc.target)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResultsOfAnEarlierRunDoNotCount(t *testing.T) {
	good := story(runOf(3), "ppp")
	is := target("web-0", in("eu", good), in("us", good))
	is.Spec.Run = 3
	if check.StateOf(is).Passed {
		t.Error("it has passed by the results of another run")
	}
}

func TestAFirstReleaseHasNothingToCompareWith(t *testing.T) {
	first := target("")
	first.Spec.Checks[0].Check = prometheusCheck("$(incumbent)")
	first.Status.Run = 0
	if is := check.StateOf(first); !is.Passed {
		t.Errorf("%+v", is)
	}
	expected := "there is nothing to compare with: no Release served before"
	if is := check.Start(&first.Spec)[0].Message; is != expected {
		t.Error(is)
	}
	first.Spec.Checks[0].Check = prometheusCheck("$$(incumbent)")
	if check.StateOf(first).Passed {
		t.Error("an escaped argument is one")
	}
}

func TestManyResultsFitIntoAnObject(t *testing.T) {
	long := runOf(9)
	long.Name = strings.Repeat("é", 31)
	worst := check.Add(long, shipper.CheckResult{Name: long.Name, Cluster: strings.Repeat("c", 63), Phase: shipper.CheckPending},
		check.Measurement{Time: noon, Verdict: shipper.VerdictFailed, Value: strings.Repeat("é", 999), Message: strings.Repeat("é", 999)})
	for _, n := range []int{200, 201, check.MaxResults} {
		all := make([]shipper.CheckResult, n)
		for i := range all {
			all[i] = *worst.DeepCopy()
		}
		text, err := json.Marshal(check.Shortened(all))
		if err != nil || len(text) > 800<<10 {
			t.Errorf("%d results have %d bytes, %v", n, len(text), err)
		}
	}
	many := make([]shipper.CheckResult, 201)
	for i := range many {
		many[i] = *worst.DeepCopy()
	}
	if next, more := check.Next(&shipper.CheckTargetSpec{}, long, check.Add(runOf(9), check.Shortened(many)[200],
		check.Measurement{})); more || !next.IsZero() {
		t.Error("a result without its measurements is measured again")
	}
	if short := check.Shortened(many); short[19].Message == "" || short[20].Message != "" || short[20].LastTime == nil {
		t.Errorf("%+v", short[20])
	}
}

func TestAReleaseThatWasMadeAtItsLastStepHasNoChecks(t *testing.T) {
	rel := canary()
	rel.Spec.Environment.Strategy.Steps[2].Checks = rel.Spec.Environment.Strategy.Checks
	rel.Spec.TargetStep = 2
	if is := len(check.Of(rel)); is != 1 {
		t.Errorf("a Release that was moved there has %d", is)
	}
	delete(rel.Annotations, shipper.ReleaseMovedAnnotation)
	if is := len(check.Of(rel)); is != 0 {
		t.Errorf("it has %d", is)
	}
}
