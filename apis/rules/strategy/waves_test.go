// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/strategy"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// fleet is a simulated Application whose newest Release goes by waves, with the laws of waves.
type fleet struct {
	*app
	t *testing.T
	// bound is how many clusters may be moving at the same time.
	bound int
	// untouched are clusters in which nothing of the newest Release may be requested.
	untouched []string
	// failures is the maxFailures of new Releases.
	failures *intstr.IntOrString
}

var inWaves = waves.Assigned{"a": 0, "b": 1, "c": 1, "d": 1}

// newFleet has a complete Release in clusters a to d, and one after it that begins with wave 0: a, then b, c and d.
func newFleet(t *testing.T, bound int) *fleet {
	t.Helper()
	f := &fleet{app: newApp(), t: t, bound: 4}
	f.release(allIn, 4, "a", "b", "c", "d")
	f.settles()
	f.bound = bound
	f.next(bound)
	return f
}

// next makes a new Release, which begins with wave 0.
func (f *fleet) next(bound int) *strategy.Release {
	r := f.release(vanguard, 4, "a", "b", "c", "d")
	r.Release.Spec.Environment.Strategy.Waves = []shipper.Wave{
		{Name: "canary"}, {Name: "production", MaxConcurrency: new(intstr.FromInt32(int32(bound)))},
	}
	r.Release.Spec.Environment.Strategy.MaxFailures = f.failures
	r.Release.Annotations[shipper.ReleaseWavesAnnotation] = inWaves.String()
	r.Installation.Spec.Clusters = []string{}
	r.Capacity.Spec.Clusters, r.Traffic.Spec.Clusters = r.Capacity.Spec.Clusters[:1], r.Traffic.Spec.Clusters[:1]
	f.untouched = []string{"b", "c", "d"}
	return r
}

// goes moves the newest Release.
func (f *fleet) goes(wave, step int32) {
	f.newest().Spec.TargetWave, f.newest().Spec.TargetStep = &wave, step
	if wave > 0 {
		f.untouched = nil
	}
}

// tick makes one plan, carries it out, lets the clusters work, and judges the laws.
func (f *fleet) tick() (changed bool) {
	f.t.Helper()
	before := f.picture()
	f.reconcile()
	f.judge()
	f.work()
	f.judge()
	return before != f.picture()
}

// settles ticks until nothing changes.
func (f *fleet) settles() {
	f.t.Helper()
	for range 80 {
		if !f.tick() {
			return
		}
	}
	f.t.Fatalf("this does not come to an end:\n%s", f.picture())
}

// picture is all that is requested, and what runs.
func (f *fleet) picture() string {
	var out strings.Builder
	for _, r := range f.all() {
		fmt.Fprintln(&out, r.Release.Name, r.Installation.Spec.Clusters, r.Capacity.Spec.Clusters, r.Traffic.Spec.Clusters,
			r.Release.Status.AchievedStep, len(r.Release.Status.Conditions), r.Release.Status.FailedClusters,
			r.Release.Status.RecoveringClusters)
		for _, cluster := range slices.Sorted(maps.Keys(f.runs[r.Release.Name])) {
			fmt.Fprintln(&out, cluster, *f.runs[r.Release.Name][cluster])
		}
	}
	return out.String()
}

// judge judges the laws: no more clusters are moving than may, untouched clusters get no request, and every cluster has traffic.
func (f *fleet) judge() {
	f.t.Helper()
	newest := f.releases[len(f.releases)-1]
	for _, cluster := range f.untouched {
		if strategy.IsBegun(*newest, cluster) {
			f.t.Fatalf("%s gets a request in %s:\n%s", newest.Release.Name, cluster, f.picture())
		}
	}
	if moving := f.moving(); len(moving) > f.bound {
		f.t.Fatalf("%v are moving, and %d may:\n%s", moving, f.bound, f.picture())
	}
	for _, cluster := range []string{"a", "b", "c", "d"} {
		serving := int32(0)
		for _, runs := range f.runs {
			if here := runs[cluster]; here != nil {
				serving += here.traffic
			}
		}
		if serving == 0 && len(f.releases) > 1 {
			f.t.Fatalf("nothing serves in %s:\n%s", cluster, f.picture())
		}
	}
}

// moving are the clusters in which Pods or traffic are not as a step has them, but those that have failed within maxFailures.
func (f *fleet) moving() []string {
	var out []string
	newest := f.releases[len(f.releases)-1]
	for _, cluster := range []string{"a", "b", "c", "d"} {
		if slices.Contains(newest.Release.Status.FailedClusters, cluster) {
			continue
		}
		here := f.runs[newest.Release.Name][cluster]
		if here == nil {
			if slices.Contains(newest.Installation.Spec.Clusters, cluster) {
				out = append(out, cluster)
			}
			continue
		}
		rest := []run{{0, 0}, {1, 0}, {2, 2}, {4, 4}}
		if !slices.Contains(rest, *here) {
			out = append(out, cluster)
		}
	}
	return out
}

// has are the Pods of the newest Release, by cluster.
func (f *fleet) has() map[string]int32 {
	out := map[string]int32{}
	for cluster, here := range f.runs[f.newest().Name] {
		out[cluster] = here.pods
	}
	return out
}

func (f *fleet) wants(what string, want map[string]int32) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.has()); diff != "" {
		f.t.Fatalf("%s (-want +got):\n%s\n%s", what, diff, f.picture())
	}
}

func (f *fleet) isAt(want position.Position) {
	f.t.Helper()
	if is := position.Achieved(f.newest()); is != want {
		f.t.Fatalf("achieved %v, want %v: %+v", is, want, f.plan.Step)
	}
}

func TestWavesGoThroughTheStepsOneAfterAnother(t *testing.T) {
	for bound := 1; bound <= 3; bound++ {
		f := newFleet(t, bound)
		f.settles()
		f.isAt(position.Position{})
		f.wants("the first step", map[string]int32{"a": 1})
		f.goes(0, 2)
		f.settles()
		f.isAt(position.Position{Wave: 0, Step: 2})
		f.wants("the first wave", map[string]int32{"a": 4})
		if strategy.Complete(f.newest()) {
			t.Error("it is complete after the first wave")
		}
		f.goes(1, 0)
		f.settles()
		f.isAt(position.Position{Wave: 1})
		f.wants("the first step of the second wave", map[string]int32{"a": 4, "b": 1, "c": 1, "d": 1})
		f.goes(1, 1)
		f.settles()
		f.goes(1, 2)
		f.settles()
		f.isAt(position.Position{Wave: 1, Step: 2})
		f.wants("the end", map[string]int32{"a": 4, "b": 4, "c": 4, "d": 4})
		if !strategy.Complete(f.newest()) {
			t.Errorf("it is not complete: %+v", f.newest().Status.Conditions)
		}
		want := []shipper.ReleaseWave{{Name: "canary", Clusters: 1, Achieved: 1}, {Name: "production", Clusters: 3, Achieved: 3}}
		if diff := cmp.Diff(want, f.newest().Status.Waves); diff != "" {
			t.Errorf("figures (-want +got):\n%s", diff)
		}
	}
}

func TestABadReleaseStopsAtTheFirstClustersOfItsWave(t *testing.T) {
	f := newFleet(t, 1)
	f.settles()
	f.goes(0, 2)
	f.settles()
	f.broken[f.newest().Name] = true
	f.goes(1, 2)
	f.settles()
	f.wants("one cluster has it", map[string]int32{"a": 4, "b": 0})
	want := []shipper.ReleaseWave{
		{Name: "canary", Clusters: 1, Achieved: 1}, {Name: "production", Clusters: 3, Moving: 1, MovingClusters: []string{"b"}},
	}
	if diff := cmp.Diff(want, f.newest().Status.Waves); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	is := f.plan.Step
	if is.Converged || len(is.Lacking) != 1 || is.Lacking[0].Cluster != "b" || !strings.Contains(is.Awaited, "2 more wait") {
		t.Errorf("%+v", is)
	}
}

func TestNoClusterBeginsWhileAUserHoldsTheRelease(t *testing.T) {
	f := newFleet(t, 1)
	f.settles()
	f.goes(0, 2)
	f.settles()
	f.goes(1, 2)
	for f.runs[f.newest().Name]["b"] == nil || f.runs[f.newest().Name]["b"].pods == 0 {
		f.tick()
	}
	f.newest().Spec.Hold = "lunch"
	f.settles()
	f.wants("the cluster that had begun gets there", map[string]int32{"a": 4, "b": 4})
	if is := f.plan.Step; is.Converged || !strings.Contains(is.Awaited, "none begins while spec.hold is set: lunch") {
		t.Errorf("%+v", is)
	}
	f.newest().Spec.Hold = ""
	f.settles()
	f.wants("the others follow", map[string]int32{"a": 4, "b": 4, "c": 4, "d": 4})
}

func TestAMoveBackIsNotBoundedAndLeavesEarlierWavesAlone(t *testing.T) {
	f := newFleet(t, 1)
	f.settles()
	f.goes(0, 2)
	f.settles()
	f.goes(1, 1)
	f.settles()
	f.bound = 4
	f.wants("half of it", map[string]int32{"a": 4, "b": 2, "c": 2, "d": 2})
	f.moveBack(position.Position{Wave: 0, Step: 2})
	f.settles()
	f.isAt(position.Position{Wave: 0, Step: 2})
	f.wants("back", map[string]int32{"a": 4, "b": 0, "c": 0, "d": 0})
	if pods := f.runs["web-0"]["b"].pods; pods != 4 {
		t.Errorf("the Release before has %d Pods in b", pods)
	}
	f.bound = 1
	f.goes(1, 0)
	f.newest().Annotations[shipper.ReleaseMovedAnnotation] = `{"from":2,"to":0,"toWave":1,"count":2}`
	f.settles()
	f.wants("forward again", map[string]int32{"a": 4, "b": 1, "c": 1, "d": 1})
}

// moveBack moves the newest Release back, as a webhook notes it.
func (f *fleet) moveBack(to position.Position) {
	from := position.Of(f.newest())
	to.Set(f.newest())
	f.newest().Annotations[shipper.ReleaseMovedAnnotation] = fmt.Sprintf(
		`{"from":%d,"to":%d,"fromWave":%d,"toWave":%d,"count":1}`, from.Step, to.Step, from.Wave, to.Wave)
}

func TestAnAbortReturnsTheBegunClustersAlone(t *testing.T) {
	f := newFleet(t, 1)
	f.settles()
	f.goes(0, 1)
	f.settles()
	f.bound, f.untouched = 4, nil
	before := f.releases[0].Capacity.Generation + 1
	f.leave(f.newest().Name)
	f.settles()
	f.wants("the Release before", map[string]int32{"a": 4, "b": 4, "c": 4, "d": 4})
	if len(f.leaving) > 0 {
		t.Errorf("%s is still there", f.leaving[0].Release.Name)
	}
	if is := f.releases[0]; is.Capacity.Generation != before {
		t.Errorf("its clusters changed %d times, and a alone was to", is.Capacity.Generation-before)
	}
}

func TestANewerReleaseReplacesWhatServesInEachCluster(t *testing.T) {
	f := newFleet(t, 1)
	f.settles()
	f.goes(0, 2)
	f.settles()
	f.goes(1, 1)
	f.tick()
	f.tick()
	f.next(1)
	f.bound, f.untouched = 2, nil
	f.settles()
	f.isAt(position.Position{})
	f.wants("the first step", map[string]int32{"a": 1})
	if pods := f.runs["web-1"]["a"].pods; pods != 4 {
		t.Errorf("the superseded Release, which serves in a, has %d Pods there", pods)
	}
	if here := f.runs["web-0"]["a"]; here.pods != 0 {
		t.Errorf("the Release that it had replaced in a has %d Pods there", here.pods)
	}
	f.goes(0, 2)
	f.settles()
	f.wants("the first wave", map[string]int32{"a": 4})
	if here := f.runs["web-1"]["a"]; here != nil && here.pods != 0 {
		t.Errorf("the superseded Release has %d Pods in a", here.pods)
	}
	f.goes(1, 2)
	f.settles()
	f.wants("the end", map[string]int32{"a": 4, "b": 4, "c": 4, "d": 4})
	if len(f.releases) != 2 {
		t.Errorf("%d Releases are left", len(f.releases))
	}
}

func TestASupersededReleaseThatLeavesWidensNoBound(t *testing.T) {
	f := newFleet(t, 1)
	f.keeps = true
	f.settles()
	f.goes(0, 2)
	f.settles()
	f.goes(1, 1)
	f.settles()
	f.next(1)
	f.untouched = nil
	f.settles()
	f.goes(0, 2)
	f.settles()
	f.goes(1, 0)
	for len(f.leaving) == 0 {
		f.tick()
	}
	f.goes(1, 2)
	f.settles()
	f.wants("the end", map[string]int32{"a": 4, "b": 4, "c": 4, "d": 4})
}

func TestAClusterThatIsLostBeforeItsTurnTakesNoSlot(t *testing.T) {
	f := newFleet(t, 1)
	f.settles()
	f.goes(0, 2)
	f.settles()
	f.down["b"] = true
	f.tick()
	f.goes(1, 2)
	f.settles()
	f.wants("the others finish", map[string]int32{"a": 4, "c": 4, "d": 4})
	if is := f.plan.Step; is.Converged || len(is.Lacking) != 1 || is.Lacking[0].Cluster != "b" || is.Lacking[0].Reachable {
		t.Errorf("%+v", is)
	}
	f.down["b"] = false
	f.tick()
	f.settles()
	f.wants("b follows", map[string]int32{"a": 4, "b": 4, "c": 4, "d": 4})
}

func TestARestoredManagementClusterMovesNothingThatServes(t *testing.T) {
	for _, status := range []bool{true, false} {
		f := newFleet(t, 1)
		f.settles()
		f.goes(0, 2)
		f.settles()
		f.goes(1, 1)
		f.settles()
		f.bound, f.keepsUnlisted = 4, true
		for _, r := range f.releases {
			schedule(r, 4, []string{"a", "b", "c", "d"})
			if r.Release == f.newest() {
				r.Installation.Spec.Clusters = []string{}
			}
			if !status {
				r.Release.Status = shipper.ReleaseStatus{}
			}
		}
		f.settles()
		f.wants("half of it", map[string]int32{"a": 4, "b": 2, "c": 2, "d": 2})
	}
}

func TestAnEmptyWaveIsDone(t *testing.T) {
	f := newFleet(t, 3)
	f.newest().Annotations[shipper.ReleaseWavesAnnotation] = waves.Assigned{"a": 1, "b": 1, "c": 1, "d": 1}.String()
	f.untouched = []string{"a", "b", "c", "d"}
	f.settles()
	f.isAt(position.Position{})
	f.wants("nothing", map[string]int32{})
}
