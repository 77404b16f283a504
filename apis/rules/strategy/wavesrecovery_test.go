// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"shipper.dev/shipper/apis/rules/check"
	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// status is what the status of the newest Release says of failures.
func (f *fleet) status() waves.Failures { return waves.FailedIn(f.newest()) }

func (f *fleet) hasFailures(what string, want waves.Failures) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.status()); diff != "" {
		f.t.Fatalf("%s: failures (-want +got):\n%s", what, diff)
	}
}

// recovering are clusters that had failed and were ready again.
func recovering(caughtUp bool, names ...string) (out waves.Failures) {
	for _, name := range names {
		out.Recovering = append(out.Recovering, shipper.RecoveringCluster{Name: name, CaughtUp: caughtUp})
	}
	return out
}

// failsAgain lets the deadline of a recovering cluster end.
func (f *fleet) failsAgain(cluster string) {
	f.t.Helper()
	i := slices.IndexFunc(f.plan.Step.Recovering, func(r strategy.Recovery) bool { return r.Name == cluster })
	if i < 0 || !f.plan.Step.Recovering[i].Judged || f.plan.Step.Recovering[i].Exposed {
		f.t.Fatalf("%+v", f.plan.Step.Recovering)
	}
	s := &f.newest().Status
	s.FailedClusters = append(s.FailedClusters, cluster)
	s.RecoveringClusters = slices.DeleteFunc(s.RecoveringClusters, func(c shipper.RecoveringCluster) bool { return c.Name == cluster })
}

// TestARecoveredClusterWaitsForItsTurn has b ready again while c moves: at no time do both.
func TestARecoveredClusterWaitsForItsTurn(t *testing.T) {
	f := failing(t, 1)
	f.fails("b")
	f.settles()
	f.pace = 1
	f.goes(1, 2)
	for f.has()["c"] < 2 {
		f.tick()
	}
	clear(f.broken)
	f.tick()
	f.tick()
	f.hasFailures("while c moves", waves.Failures{Counted: []string{"b"}})
	for f.has()["c"] < 4 || f.has()["b"] < 2 {
		f.tick()
	}
	f.hasFailures("after it", recovering(false, "b"))
	if is := f.plan.Step; is.Converged || len(is.Lacking) != 1 || is.Lacking[0].Cluster != "b" || !is.Lacking[0].Recovering || is.Late != nil {
		t.Errorf("%+v", is)
	}
	want := shipper.ReleaseWave{Name: "production", Clusters: 3, Achieved: 1, Moving: 1, MovingClusters: []string{"b"}}
	if diff := cmp.Diff(want, f.newest().Status.Waves[1]); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	f.settles()
	f.isAt(position.Position{Wave: 1, Step: 2})
	if f.wants("the end", map[string]int32{"a": 4, "b": 4, "c": 4, "d": 4}); !strategy.Complete(f.newest()) {
		t.Error("it is not complete")
	}
	f.hasFailures("the end", waves.Failures{})
}

func TestARecoveredClusterFailsAgain(t *testing.T) {
	f := failing(t, 1)
	f.fails("b")
	f.goes(1, 2)
	f.settles()
	f.pace, f.broken["web-1 in b"] = 1, false
	for f.has()["b"] < 2 {
		f.tick()
	}
	f.broken["web-1 in b"] = true
	f.settles()
	f.hasFailures("it does not get there", recovering(false, "b"))
	if is := f.plan.Step; is.Converged || strategy.Complete(f.newest()) {
		t.Errorf("%+v", is)
	}
	f.failsAgain("b")
	before := f.requested("b")
	f.settles()
	if diff := cmp.Diff(before, f.requested("b")); diff != "" {
		t.Errorf("more is requested where it failed (-before +after):\n%s", diff)
	}
	f.hasFailures("it counts again", waves.Failures{Counted: []string{"b"}})
	if is := f.plan.Step; !is.Converged || is.Lagging == "" || strategy.Complete(f.newest()) {
		t.Errorf("%+v", is)
	}
	clear(f.broken)
	f.settles()
	if !strategy.Complete(f.newest()) {
		t.Errorf("%+v", f.plan.Step)
	}
}

// TestNothingMoreIsRequestedOfARecoveringClusterThatIsNotReady, as when its Pods crash again before it is its turn.
func TestNothingMoreIsRequestedOfARecoveringClusterThatIsNotReady(t *testing.T) {
	f := failing(t, 1)
	f.newest().Status.RecoveringClusters = []shipper.RecoveringCluster{{Name: "b"}}
	before := f.requested("b")
	f.goes(1, 2)
	f.settles()
	if diff := cmp.Diff(before, f.requested("b")); diff != "" {
		t.Errorf("requests in b (-before +after):\n%s", diff)
	}
	f.failsAgain("b")
	f.settles()
	f.wants("the others go on", map[string]int32{"a": 4, "b": 0, "c": 4, "d": 4})
}

// TestAClusterOfADoneWaveRecoversBesideTheNext has b of the first wave follow while c and d of the second begin.
func TestAClusterOfADoneWaveRecoversBesideTheNext(t *testing.T) {
	f := newPairs(t)
	f.newest().Spec.Environment.Strategy.MaxFailures = new(intstr.FromInt32(1))
	f.goes(0, 1)
	f.broken["web-1 in b"] = true
	f.settles()
	f.fails("b")
	f.goes(0, 2)
	f.settles()
	f.isAt(position.Position{Step: 2})
	f.goes(1, 0)
	f.settles()
	f.isAt(position.Position{Wave: 1})
	if diff := cmp.Diff([]string{"c", "d"}, waves.Measured(f.newest(), stamp.Clusters(f.newest()))); diff != "" {
		t.Errorf("before, checks are made in (-want +got):\n%s", diff)
	}
	f.checks = &check.State{Passed: true}
	f.newest().Spec.Environment.Strategy.Steps[0].Checks = []shipper.StepCheck{{Check: "errors"}}
	clear(f.broken)
	f.pace = 1
	for f.has()["b"] < 3 {
		f.tick()
	}
	f.hasFailures("on its way", recovering(false, "b"))
	rels := []*shipper.Release{f.releases[0].Release, f.newest(), {}}
	if i := strategy.IncumbentIn(rels, "b"); i != 0 {
		t.Errorf("a newer Release would replace the %d. in b", i)
	}
	f.settles()
	f.wants("b has all", map[string]int32{"a": 4, "b": 4, "c": 1, "d": 1})
	if i := strategy.IncumbentIn(rels, "b"); i != 1 {
		t.Errorf("then it would replace the %d. in b", i)
	}
	f.hasFailures("it has caught up", recovering(true, "b"))
	if diff := cmp.Diff([]string{"b", "c", "d"}, waves.Measured(f.newest(), stamp.Clusters(f.newest()))); diff != "" {
		t.Errorf("then they are made in (-want +got):\n%s", diff)
	}
	f.newest().Status.Progress = &shipper.ReleaseProgress{Wave: 1}
	f.goes(1, 1)
	f.tick()
	f.hasFailures("at the next step", waves.Failures{})
}

// TestChecksThatWereMadeWithoutAClusterDoNotCountForIt has the run of a step pass before b catches up.
func TestChecksThatWereMadeWithoutAClusterDoNotCountForIt(t *testing.T) {
	f := failing(t, 1)
	f.newest().Spec.Environment.Strategy.Steps = slices.Clone(vanguard)
	f.newest().Spec.Environment.Strategy.Steps[2].Checks = []shipper.StepCheck{{Check: "errors"}}
	f.fails("b")
	f.newest().Annotations[shipper.ReleaseMovedAnnotation] = `{"from":0,"to":2,"fromWave":1,"toWave":1,"count":3}`
	f.goes(1, 2)
	f.settles()
	f.checks = &check.State{Passed: true}
	f.settles()
	f.isAt(position.Position{Wave: 1, Step: 2})
	clear(f.broken)
	for is := f.status(); len(is.Recovering) == 0 || !is.Recovering[0].CaughtUp; is = f.status() {
		f.tick()
		if strategy.Complete(f.newest()) {
			t.Fatal("it is complete without it")
		}
	}
	if is := f.plan.Step; is.Achieved || is.Checks != nil || strategy.Complete(f.newest()) {
		t.Errorf("in the plan that finds it there: %+v", is)
	}
	f.checks = &check.State{Awaited: "check errors runs in b"}
	f.settles()
	const lags = "1 cluster (b) failed within maxFailures, and caught up since: check errors runs in b"
	if c := shipper.FindCondition(f.newest().Status.Conditions, shipper.ReleaseComplete); c.Message != lags {
		t.Errorf("Complete is %s: %s", c.Status, c.Message)
	}
	f.newest().Status.Progress = &shipper.ReleaseProgress{
		Wave: 1, Step: 2, Move: 3, Failure: &shipper.ReleaseFailure{Reason: shipper.CheckFailed},
	}
	f.newest().Status.RecoveringClusters[0].CaughtUp = false
	f.settles()
	f.hasFailures("a check has failed: what was measured stays", recovering(false, "b"))
	f.newest().Status.Progress, f.checks = nil, &check.State{Passed: true}
	f.settles() // the stand-in for a run passes again at once
	f.settles()
	if !strategy.Complete(f.newest()) {
		t.Errorf("%+v", f.plan.Step)
	}
}

// TestAWaveThatHasFailedEverywhereIsNotPassed, as when the other clusters have left: its own deadline ends then, and nothing more fails.
func TestAWaveThatHasFailedEverywhereIsNotPassed(t *testing.T) {
	f := failing(t, 1)
	f.fails("b")
	f.newest().Annotations[shipper.ReleaseWavesAnnotation] = "a=0,b=1,c=0,d=0"
	f.bound = 4
	f.settles()
	if is := f.plan.Step; is.Converged || len(is.Lacking) != 1 || is.Lacking[0].Cluster != "b" || is.Late != nil || is.OverBudget != "" {
		t.Errorf("%+v", is)
	}
}

func TestTheFirstReleaseSaysWhatItsFailedClustersNeed(t *testing.T) {
	f := &fleet{app: newApp(), t: t, bound: 4}
	r := f.next(1)
	r.Release.Spec.Environment.Strategy.MaxFailures = new(intstr.FromInt32(1))
	f.untouched, f.broken["web-0 in b"] = nil, true
	f.goes(1, 0)
	f.settles()
	f.fails("b")
	f.goes(1, 2)
	f.settles()
	const lags = "1 cluster (b) failed within maxFailures; no earlier Release serves there: repair it, or edit the Application: " +
		"b: InProgress 0/1"
	if f.plan.Step.Lagging != lags {
		t.Errorf("%+v", f.plan.Step)
	}
}
