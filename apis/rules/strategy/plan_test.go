// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// settled is an app whose Releases were rolled out one after another, the last one to its step.
func settled(t *testing.T, step int32, strategies ...[]shipper.RolloutStrategyStep) *app {
	t.Helper()
	a := newApp()
	for i, steps := range strategies {
		a.release(steps, 10, "a", "b")
		a.newest().Spec.TargetStep = int32(len(steps) - 1)
		if i == len(strategies)-1 {
			a.newest().Spec.TargetStep = step
		}
		for range 20 {
			a.reconcile()
			a.work()
		}
	}
	return a
}

func (a *app) replan() strategy.Plan { return strategy.Make(a.observed(), metav1.NewTime(a.now)) }

func outcome(p strategy.Plan) strategy.Outcome { return p.Outcomes[len(p.Outcomes)-1] }

func condition(o strategy.Outcome, conditionType string) shipper.Condition {
	if c := shipper.FindCondition(o.Status.Conditions, conditionType); c != nil {
		c.LastTransitionTime = metav1.Time{}
		return *c
	}
	return shipper.Condition{}
}

func TestNothingObservedMakesNoPlan(t *testing.T) {
	if diff := cmp.Diff(strategy.Plan{}, strategy.Make(strategy.Observed{}, metav1.Time{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAPlanIsMadeOfItsArgumentsOnly(t *testing.T) {
	a := settled(t, 0, allIn, vanguard)
	a.newest().Spec.TargetStep = 1
	before := a.observed()
	var copies strategy.Observed
	for _, r := range before.Releases {
		copies.Releases = append(copies.Releases, strategy.Release{
			Release: r.Release.DeepCopy(), Installation: r.Installation.DeepCopy(),
			Capacity: r.Capacity.DeepCopy(), Traffic: r.Traffic.DeepCopy(),
		})
	}
	first, second := a.replan(), a.replan()
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("two plans differ:\n%s", diff)
	}
	if diff := cmp.Diff(copies, before); diff != "" {
		t.Errorf("planning changed what was observed:\n%s", diff)
	}
	if !first.Writes() {
		t.Error("nothing is written")
	}
}

func TestConditionsOfHistoricalReleasesAreRepaired(t *testing.T) {
	a := settled(t, 2, allIn, vanguard, vanguard)
	at := metav1.NewTime(a.now.Add(time.Hour))
	for i, r := range a.releases[:2] {
		// The status that a Release keeps if it was superseded while it waited for a condition.
		status := &r.Release.Status
		status.Strategy = &shipper.ReleaseStrategyStatus{
			State: shipper.ReleaseStrategyState{WaitingForCapacity: shipper.StrategyStateTrue},
			Conditions: []shipper.ReleaseStrategyCondition{
				{Condition: shipper.Condition{Type: shipper.StrategyContenderAchievedCapacity, Status: "False", Reason: "X"}, Step: 7},
				{Condition: shipper.Condition{Type: shipper.StrategyContenderAchievedInstallation, Status: "True"}, Step: 7},
			},
		}
		status.Conditions = shipper.SetCondition(status.Conditions, shipper.Condition{
			Type: shipper.ReleaseStrategyExecuted, Status: "False", Reason: shipper.StrategyInProgress, Message: "it waits",
		}, at)
		o := a.replan().Outcomes[i]
		want := &shipper.ReleaseStrategyStatus{
			State: shipper.ReleaseStrategyState{
				WaitingForInstallation: "False", WaitingForCapacity: "False", WaitingForTraffic: "False", WaitingForCommand: "False",
			},
			Conditions: []shipper.ReleaseStrategyCondition{
				{Condition: shipper.Condition{Type: shipper.StrategyContenderAchievedInstallation, Status: "True"}, Step: 7},
			},
		}
		if diff := cmp.Diff(want, o.Status.Strategy); diff != "" {
			t.Errorf("%s, %s: -want +got:\n%s", r.Release.Name, o.Role, diff)
		}
		executed := shipper.Condition{Type: shipper.ReleaseStrategyExecuted, Status: "True"}
		if diff := cmp.Diff(executed, condition(o, shipper.ReleaseStrategyExecuted)); diff != "" {
			t.Errorf("%s, %s: -want +got:\n%s", r.Release.Name, o.Role, diff)
		}
	}
}

func TestTransitionTimesMoveWithStatusOnly(t *testing.T) {
	a := settled(t, 0, allIn, vanguard)
	since := a.newest().Status.Strategy.Conditions[1].LastTransitionTime
	a.now = a.now.Add(time.Hour)
	a.newest().Spec.TargetStep = 1
	o := outcome(a.replan())
	want := []shipper.ReleaseStrategyCondition{
		{Condition: shipper.Condition{
			Type: shipper.StrategyContenderAchievedCapacity, Status: "False", Reason: shipper.ClustersNotReady,
			LastTransitionTime: metav1.NewTime(a.now),
			Message: `release "web-1" hasn't achieved capacity in clusters: [a b]. ` +
				"for more details try `kubectl describe ct web-1`",
		}, Step: 1},
		{Condition: shipper.Condition{
			Type: shipper.StrategyContenderAchievedInstallation, Status: "True", LastTransitionTime: since,
		}, Step: 1},
	}
	if diff := cmp.Diff(want, o.Status.Strategy.Conditions); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAnUnscheduledReleaseWaitsAndChangesNoOther(t *testing.T) {
	a := settled(t, 1, allIn, vanguard)
	r := a.release(vanguard, 10, "a", "b")
	r.Traffic = nil
	plan := a.replan()
	letGo := a.releases[1].Installation.Spec
	letGo.CanOverride = false
	for i, want := range []strategy.Write{{}, {Installation: &letGo}, {}} {
		if diff := cmp.Diff(want, plan.Outcomes[i].Write); diff != "" {
			t.Errorf("%s: -want +got:\n%s", a.releases[i].Release.Name, diff)
		}
	}
	if len(plan.Covered) > 0 {
		t.Errorf("%v may go", plan.Covered)
	}
	want := shipper.Condition{
		Type: shipper.ReleaseStrategyExecuted, Status: "False", Reason: shipper.StrategyInProgress,
		Message: "step 0 (staging) waits for clusters to be chosen and targets to be created",
	}
	if diff := cmp.Diff(want, condition(outcome(plan), shipper.ReleaseStrategyExecuted)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestIncumbentThatLostItsTargetsIsWaitedFor(t *testing.T) {
	for name, lose := range map[string]func(*strategy.Release){
		"capacity": func(r *strategy.Release) { r.Capacity = nil },
		"traffic":  func(r *strategy.Release) { r.Traffic = nil },
		"all":      func(r *strategy.Release) { r.Installation, r.Capacity, r.Traffic = nil, nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			a := settled(t, 1, allIn, vanguard)
			lose(a.releases[0])
			a.newest().Spec.TargetStep = 0
			plan := a.replan()
			if w := outcome(plan).Write; !w.Empty() {
				t.Errorf("got %+v, want the contender to stay as it is", w)
			}
			if c := condition(outcome(plan), shipper.ReleaseStrategyExecuted); c.Status != "False" {
				t.Errorf("got %+v", c)
			}
		})
	}
}

func TestAStrategyWithoutStepsCannotBeExecuted(t *testing.T) {
	for name, s := range map[string]*shipper.RolloutStrategy{"none": nil, "empty": {}} {
		t.Run(name, func(t *testing.T) {
			a := settled(t, 0, allIn)
			a.newest().Spec.Environment.Strategy = s
			plan := a.replan()
			want := shipper.Condition{
				Type: shipper.ReleaseStrategyExecuted, Status: "False", Reason: shipper.StrategyExecutionFailed,
				Message: `failed to execute strategy: "the strategy of Release \"default/web-0\" has no steps"`,
			}
			if diff := cmp.Diff(want, condition(outcome(plan), shipper.ReleaseStrategyExecuted)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if plan.Writes() {
				t.Error("something is written")
			}
		})
	}
}

func TestAnUnnamedStepIsCalledByItsNumber(t *testing.T) {
	a := newApp()
	a.release([]shipper.RolloutStrategyStep{step("", 0, 100, 0, 100)}, 1, "a")
	want := "step 0 waits: clusters pending installation: [a]. for more details try `kubectl describe it web-0`"
	if got := condition(outcome(a.replan()), shipper.ReleaseStrategyExecuted).Message; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPendingClustersAreNamed(t *testing.T) {
	notReady := func(message string) []shipper.Condition {
		return []shipper.Condition{{Type: shipper.TargetReady, Status: "False", Message: message}}
	}
	ready := []shipper.Condition{{Type: shipper.TargetReady, Status: "True"}}
	type targets = *strategy.Release
	cases := map[string]struct {
		change func(targets)
		want   string
	}{
		"what the installation says": {
			func(r targets) { r.Installation.Status.Conditions = notReady("b: ChartError no such file") },
			"clusters pending installation: b: ChartError no such file.",
		},
		"an installation that says nothing": {
			func(r targets) {
				r.Installation.Status.Conditions = notReady("")
				r.Installation.Status.Clusters = []shipper.ClusterInstallationStatus{{Name: "a", Conditions: ready}}
			},
			"clusters pending installation: [b].",
		},
		"an installation that contradicts itself": {
			func(r targets) {
				r.Installation.Status.Conditions = nil
				r.Installation.Status.Clusters = []shipper.ClusterInstallationStatus{
					{Name: "a", Conditions: ready}, {Name: "b", Conditions: ready},
				}
			},
			"clusters pending installation: [a b].",
		},
		"an installation that was not observed": {
			func(r targets) { r.Installation.Generation++ }, "clusters pending installation: [a b].",
		},
		"what capacity says": {
			func(r targets) { r.Capacity.Status.Conditions = notReady("a: PodsNotReady 1/10") },
			`release "web-0" hasn't achieved capacity in clusters: a: PodsNotReady 1/10.`,
		},
		"capacity that says nothing": {
			func(r targets) {
				r.Capacity.Status.Conditions = notReady("")
				r.Capacity.Status.Clusters[0].Conditions = notReady("")
			},
			`release "web-0" hasn't achieved capacity in clusters: [a].`,
		},
		"capacity that contradicts itself": {
			func(r targets) { r.Capacity.Status.Conditions = nil },
			`release "web-0" hasn't achieved capacity in clusters: [a b].`,
		},
		"capacity that was not observed": {
			func(r targets) { r.Capacity.Generation++ },
			`release "web-0" hasn't achieved capacity in clusters: [a b].`,
		},
		"one cluster that was asked for something else": {
			func(r targets) { r.Capacity.Spec.Clusters[1].Percent = 3 },
			`release "web-0" hasn't achieved capacity in clusters: [b].`,
		},
		"traffic that was not observed": {
			func(r targets) { r.Traffic.Generation++ },
			`release "web-0" hasn't achieved traffic in clusters: [a b].`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := settled(t, 0, allIn)
			tc.change(a.releases[0])
			got := condition(outcome(a.replan()), shipper.ReleaseStrategyExecuted).Message
			want := "step 0 (full on) waits: " + tc.want + " for more details try"
			if len(got) < len(want) || got[:len(want)] != want {
				t.Errorf("got  %q\nwant %q…", got, want)
			}
		})
	}
}

func TestNoReleaseIsReplacedByOneThatLacksCapacity(t *testing.T) {
	// Both steps want the same traffic of the contender: only its capacity shows that it does not serve yet.
	same := []shipper.RolloutStrategyStep{step("half", 100, 50, 100, 100), step("full on", 0, 100, 0, 100)}
	type share struct {
		percent int32
		weight  uint32
	}
	cases := map[string]struct {
		change func(*app)
		want   share
	}{
		"the pods do not become available": {func(a *app) { a.broken["web-1"] = true }, share{100, 100}},
		"the pods come one by one":         {func(a *app) { a.pace = 1 }, share{100, 100}},
		"all are there":                    {func(*app) {}, share{0, 0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := settled(t, 0, allIn, same)
			tc.change(a)
			a.newest().Spec.TargetStep = 1
			for range 4 {
				a.reconcile()
				a.work()
			}
			for i := range places[:2] {
				capacity, traffic := a.releases[0].Capacity.Spec.Clusters[i], a.releases[0].Traffic.Spec.Clusters[i]
				if got := (share{capacity.Percent, traffic.Weight}); got != tc.want {
					t.Errorf("%s: the incumbent has %v, want %v", capacity.Name, got, tc.want)
				}
			}
		})
	}
}

func TestTargetsOfAReleaseWithoutClustersStayAsTheyAre(t *testing.T) {
	a := settled(t, 0, allIn)
	delete(a.newest().Annotations, shipper.ReleaseClustersAnnotation)
	if plan := a.replan(); plan.Writes() {
		t.Errorf("got %+v", outcome(plan).Write)
	}
}

// An InstallationTarget of the original has no observedGeneration and no status of single clusters.
func TestStatusOfTheOriginalCountsUntilItIsReplaced(t *testing.T) {
	const executed = shipper.ReleaseStrategyExecuted
	a := settled(t, 0, allIn)
	it := a.releases[0].Installation
	it.Generation, it.Status.ObservedGeneration = 7, 0
	for i := range it.Status.Clusters {
		it.Status.Clusters[i].Status = shipper.InstallationStatusInstalled
	}
	if c := condition(outcome(a.replan()), executed); c.Status != "False" {
		t.Errorf("a status of ours that is about no generation is believed: %v", c)
	}
	for i := range it.Status.Clusters {
		it.Status.Clusters[i].Status = ""
	}
	if c := condition(outcome(a.replan()), executed); c.Status != "True" {
		t.Errorf("the original's status is not believed: %v", c)
	}
}
