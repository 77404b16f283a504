// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/strategy"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// failing is a fleet whose second wave, b to d, goes to step 0, and in which the Pods of the new Release crash in b.
func failing(t *testing.T, budget int32) *fleet {
	t.Helper()
	f := newFleet(t, 1)
	f.newest().Spec.Environment.Strategy.MaxFailures = new(intstr.FromInt32(budget))
	f.settles()
	f.goes(0, 2)
	f.settles()
	f.broken["web-1 in b"] = true
	f.goes(1, 0)
	f.settles()
	return f
}

// fails lets the deadline end: clusters that are late fail.
func (f *fleet) fails(want ...string) {
	f.t.Helper()
	is := f.plan.Step
	if diff := cmp.Diff(want, is.Late); diff != "" || is.OverBudget != "" {
		f.t.Fatalf("late, over budget %q (-want +got):\n%s", is.OverBudget, diff)
	}
	failed := &f.newest().Status.FailedClusters
	*failed = slices.Sorted(slices.Values(slices.Concat(*failed, is.Late)))
}

func TestAWaveGoesOnWithoutAClusterThatFailsWithinTheBudget(t *testing.T) {
	f := failing(t, 1)
	f.wants("none begins beside it", map[string]int32{"a": 4, "b": 0})
	f.fails("b")
	f.settles()
	f.isAt(position.Position{Wave: 1})
	figures := []shipper.ReleaseWave{{Name: "canary", Clusters: 1, Achieved: 1},
		{Name: "production", Clusters: 3, Achieved: 2, Failed: 1, FailedClusters: []string{"b"}}}
	if diff := cmp.Diff(figures, f.newest().Status.Waves); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	before := f.requested("b")
	f.goes(1, 2)
	f.settles()
	f.wants("the others go on", map[string]int32{"a": 4, "b": 0, "c": 4, "d": 4})
	if diff := cmp.Diff(before, f.requested("b")); diff != "" {
		t.Errorf("more is requested where it failed (-before +after):\n%s", diff)
	}
	f.isAt(position.Position{Wave: 1, Step: 2})
	lags := "1 cluster (b) failed within maxFailures; what served there before stays until this Release is ready: b: InProgress 0/1"
	want := shipper.Condition{Type: shipper.ReleaseComplete, Status: "False", Reason: shipper.StrategyNotComplete, Message: lags}
	got := *shipper.FindCondition(f.newest().Status.Conditions, shipper.ReleaseComplete)
	got.LastTransitionTime = want.LastTransitionTime
	if diff := cmp.Diff(want, got); diff != "" || f.plan.Step.Lagging != lags || f.plan.Step.Late != nil {
		t.Errorf("%+v (-want +got):\n%s", f.plan.Step, diff)
	}
	clear(f.broken)
	f.settles()
	f.wants("b follows when it is ready", map[string]int32{"a": 4, "b": 4, "c": 4, "d": 4})
	if !strategy.Complete(f.newest()) || f.newest().Status.FailedClusters != nil {
		t.Errorf("complete: %t, failed: %v", strategy.Complete(f.newest()), f.newest().Status.FailedClusters)
	}
}

// TestAReleaseIsNotCompleteWithoutAFailedCluster while a newer Release was deleted, and while its targets are not known.
func TestAReleaseIsNotCompleteWithoutAFailedCluster(t *testing.T) {
	for name, disturb := range map[string]func(o *strategy.Observed){
		"a newer Release was deleted": func(o *strategy.Observed) { o.Returning = true },
		"a target is gone":            func(o *strategy.Observed) { o.Releases[len(o.Releases)-1].Capacity = nil },
	} {
		t.Run(name, func(t *testing.T) {
			f := failing(t, 1)
			f.fails("b")
			f.bound = 4
			f.settles()
			f.goes(1, 2)
			f.settles()
			observed := f.observed()
			disturb(&observed)
			plan := strategy.Make(observed, metav1.NewTime(f.now))
			is := plan.Outcomes[len(plan.Outcomes)-1].Status
			complete := shipper.ConditionTrue(is.Conditions, shipper.ReleaseComplete)
			if diff := cmp.Diff([]string{"b"}, is.FailedClusters); diff != "" || complete {
				t.Errorf("complete: %t, failed (-want +got):\n%s", complete, diff)
			}
		})
	}
}

func TestOneMoreThanTheBudgetIsTooMany(t *testing.T) {
	f := failing(t, 1)
	f.broken["web-1 in c"] = true
	f.fails("b")
	f.settles()
	is := f.plan.Step
	if diff := cmp.Diff([]string{"c"}, is.Late); diff != "" || is.OverBudget != "2 clusters (b, c) failed, and maxFailures is 1" {
		t.Errorf("%q (-want +got):\n%s", is.OverBudget, diff)
	}
	f.wants("the last one is not touched", map[string]int32{"a": 4, "b": 0, "c": 0})
}

func TestAClusterThatLostPodsOfTheReleaseBeforeIsBeyondTheBudget(t *testing.T) {
	f := newFleet(t, 1)
	f.newest().Spec.Environment.Strategy.MaxFailures = new(intstr.FromInt32(2))
	f.settles()
	f.goes(0, 2)
	f.settles()
	f.goes(1, 0)
	f.settles()
	f.goes(1, 1)
	f.settles()
	f.broken["web-1 in b"] = true
	f.bound = 4
	f.goes(1, 2)
	f.settles()
	if is := f.plan.Step; is.OverBudget != "" {
		t.Errorf("half of the Pods are of either Release: %q", is.OverBudget)
	}
	f.runs["web-1"]["b"].pods = 0
	f.settles()
	is, over := f.plan.Step, "1 cluster (b) failed after what served there gave up Pods, which maxFailures does not cover"
	if diff := cmp.Diff([]string{"b"}, is.Late); diff != "" || is.OverBudget != over {
		t.Errorf("%q (-want +got):\n%s", is.OverBudget, diff)
	}
}

func TestALostClusterDoesNotFail(t *testing.T) {
	f := failing(t, 1)
	f.down["b"] = true
	f.tick() // the plan of the first tick does not know of it yet
	f.settles()
	if is := f.plan.Step; is.Late != nil || len(is.Lacking) != 1 || is.Lacking[0].Reachable || is.Converged {
		t.Errorf("%+v", is)
	}
	f.wants("none begins beside it", map[string]int32{"a": 4, "b": 0})
}

func TestWithoutABudgetNothingIsLate(t *testing.T) {
	f := newFleet(t, 1)
	f.broken["web-1"] = true
	f.settles()
	if is := f.plan.Step; is.Late != nil || is.OverBudget != "" {
		t.Errorf("%+v", is)
	}
}

func TestAFailedClusterGoesBackWithTheOthers(t *testing.T) {
	f := failing(t, 1)
	f.fails("b")
	f.settles()
	f.goes(1, 1)
	f.settles()
	f.bound = 4
	f.moveBack(position.Position{Step: 2})
	f.settles()
	f.wants("all are back", map[string]int32{"a": 4, "b": 0, "c": 0, "d": 0})
	if is := f.newest().Status.FailedClusters; is != nil {
		t.Errorf("%v still count", is)
	}
	f.serves("afterwards", 4)
}

// TestANewerReleaseReplacesWhatServesWhereTheOneBeforeFailed has the second Release fail in a cluster of a wave that it has done.
func TestANewerReleaseReplacesWhatServesWhereTheOneBeforeFailed(t *testing.T) {
	f := newFleet(t, 1)
	f.newest().Spec.Environment.Strategy.MaxFailures = new(intstr.FromInt32(1))
	f.newest().Annotations[shipper.ReleaseWavesAnnotation] = waves.Assigned{"a": 0, "b": 0, "c": 1, "d": 1}.String()
	f.untouched, f.broken["web-1 in b"] = []string{"c", "d"}, true
	f.settles()
	f.fails("b")
	f.bound, f.untouched = 4, nil
	f.goes(0, 2)
	f.settles()
	f.isAt(position.Position{Step: 2})
	f.next(1)
	f.bound, f.untouched = 4, nil
	f.settles()
	for at, more := (position.Position{}), true; more; at, more = at.Next(f.newest().Spec.Environment.Strategy) {
		f.goes(at.Wave, at.Step)
		f.settles()
		f.isAt(at)
		if pods := f.runs["web-0"]["b"].pods; at.Before(position.Position{Wave: 1, Step: 1}) && pods != 4 {
			t.Errorf("at %v what serves in b has %d Pods", at, pods)
		}
	}
	f.wants("the newest has all", map[string]int32{"a": 4, "b": 4, "c": 4, "d": 4})
}

func TestTheWorstFailedClusterIsNamedFirst(t *testing.T) {
	f := failing(t, 2)
	clear(f.broken)
	f.settles()
	f.broken["web-1 in c"] = true
	f.goes(1, 2)
	f.pace = 1
	for f.has()["b"] < 2 {
		f.tick()
	}
	f.broken["web-1 in b"] = true
	f.settles()
	f.fails("b")
	f.settles()
	f.fails("c")
	f.settles()
	if is := f.newest().Status.Waves[1]; is.Failed != 2 || !slices.Equal(is.FailedClusters, []string{"c", "b"}) {
		t.Errorf("%+v, pods %v", is, f.has())
	}
}

// TestWhateverFailsWavesKeepTheirBoundsAndConverge is a walk in which Pods crash in some clusters, deadlines end, and Pods start again.
func TestWhateverFailsWavesKeepTheirBoundsAndConverge(t *testing.T) {
	eachWalk(t, 60, 7, 16, func(w *walk, seed uint64) {
		w.failures = new(intstr.FromInt32(int32(1 + seed%2)))
		w.newest().Spec.Environment.Strategy.MaxFailures = w.failures
	}, func(w *walk) {
		w.failsOrActs()
		for range w.random.IntN(8) {
			w.tick()
		}
	})
}

func (w *walk) failsOrActs() {
	in := w.newest().Name + " in " + []string{"a", "b", "c", "d"}[w.random.IntN(4)]
	switch w.random.IntN(4) {
	case 0:
		w.broken[in] = !w.broken[in]
		w.note("broken: %v", slices.Sorted(maps.Keys(w.broken)))
	case 1:
		if is := w.plan.Step; len(is.Late) > 0 && is.OverBudget == "" {
			w.fails(is.Late...)
			w.note("%v fail", is.Late)
		}
		for _, r := range w.plan.Step.Recovering {
			if r.Judged && !r.Exposed && w.status().Recovery(r.Name) != nil && len(w.status().Counted) < w.failures.IntValue() {
				w.failsAgain(r.Name)
				w.note("%s fails again", r.Name)
			}
		}
	default:
		w.acts()
	}
}
