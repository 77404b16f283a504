// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const freeze = "rollouts blocked by: default/freeze"

// inProduction is a fleet whose second wave is to be at a step, after the first is done; b is blocked.
func inProduction(t *testing.T, bound int, step int32) *fleet {
	t.Helper()
	f := newFleet(t, bound)
	f.settles()
	f.goes(0, 2)
	f.settles()
	f.blockedIn = map[string]string{"b": freeze}
	f.goes(1, step)
	return f
}

// requested is all that is requested in a cluster.
func (f *fleet) requested(cluster string) string {
	var out strings.Builder
	for _, r := range f.all() {
		fmt.Fprintln(&out, r.Release.Name, slices.Contains(r.Installation.Spec.Clusters, cluster))
		for _, c := range r.Capacity.Spec.Clusters {
			if c.Name == cluster {
				fmt.Fprintln(&out, c)
			}
		}
		for _, c := range r.Traffic.Spec.Clusters {
			if c.Name == cluster {
				fmt.Fprintln(&out, c)
			}
		}
	}
	return out.String()
}

func TestABlockThatNamesAClusterHoldsItAlone(t *testing.T) {
	f := inProduction(t, 1, 2)
	f.untouched = []string{"b"}
	f.settles()
	f.wants("the others go on", map[string]int32{"a": 4, "c": 4, "d": 4})
	if is := position.Achieved(f.newest()); is != (position.Position{Step: 2}) {
		t.Errorf("achieved %v without b", is)
	}
	figures := []shipper.ReleaseWave{{Name: "canary", Clusters: 1, Achieved: 1},
		{Name: "production", Clusters: 3, Achieved: 2, Blocked: 1, BlockedClusters: []string{"b"}}}
	if diff := cmp.Diff(figures, f.newest().Status.Waves); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	want := []strategy.Lack{{Cluster: "b", Reason: shipper.RolloutsBlocked, Message: freeze, Blocked: true}}
	if diff := cmp.Diff(want, f.plan.Step.Lacking); diff != "" {
		t.Errorf("lacking (-want +got):\n%s", diff)
	}
	if !strings.Contains(f.plan.Step.Awaited, "in clusters: b: "+freeze) {
		t.Errorf("it waits for %q", f.plan.Step.Awaited)
	}
	f.blockedIn, f.untouched = nil, nil
	f.settles()
	f.wants("b follows", map[string]int32{"a": 4, "b": 4, "c": 4, "d": 4})
	if !strategy.Complete(f.newest()) {
		t.Errorf("it is not complete: %+v", f.newest().Status.Conditions)
	}
}

func TestWhileOthersMoveTheBlockedClustersAreNamed(t *testing.T) {
	f := inProduction(t, 1, 2)
	f.broken[f.newest().Name] = true
	f.settles()
	if is := f.plan.Step; len(is.Lacking) != 1 || is.Lacking[0].Cluster != "c" || is.Lacking[0].Blocked ||
		!strings.Contains(is.Awaited, "1 more wait for their turn; not in [b]: "+freeze) {
		t.Errorf("%+v", is)
	}
}

func TestAClusterThatIsBlockedWhileItMovesStaysAsItIsAndKeepsItsSlot(t *testing.T) {
	f := inProduction(t, 1, 2)
	f.blockedIn, f.pace = nil, 1
	for f.has()["b"] == 0 {
		f.tick()
	}
	f.blockedIn = map[string]string{"b": freeze}
	before := f.requested("b")
	f.settles()
	if diff := cmp.Diff(before, f.requested("b")); diff != "" {
		t.Errorf("requests in b (-before +after):\n%s", diff)
	}
	if f.has()["c"] > 0 || f.has()["d"] > 0 {
		t.Errorf("another begins beside it: %v", f.has())
	}
	if is := f.plan.Step; len(is.Lacking) != 1 || !is.Lacking[0].Blocked || !strings.Contains(is.Awaited, "2 more wait for their turn") {
		t.Errorf("%+v", is)
	}
	if w := f.newest().Status.Waves[1]; w.Moving != 1 || w.Blocked != 1 {
		t.Errorf("%+v", w)
	}
}

func TestABlockedClusterOfAnEarlierWaveKeepsNoneFromBeginning(t *testing.T) {
	f := newFleet(t, 1)
	f.newest().Annotations[shipper.ReleaseWavesAnnotation] = "a=0,b=0,c=0,d=1"
	f.untouched = nil
	f.blockedIn = map[string]string{"a": freeze, "b": freeze, "c": freeze}
	f.settles()
	f.goes(1, 0) // by the verb skip
	f.settles()
	f.wants("the next wave begins", map[string]int32{"d": 1})
}

func TestAMoveBackLeavesABlockedClusterAsItIs(t *testing.T) {
	f := inProduction(t, 3, 1)
	f.blockedIn = nil
	f.settles()
	f.blockedIn = map[string]string{"b": freeze}
	f.bound = 4
	f.moveBack(position.Position{Step: 2})
	f.settles()
	f.wants("all others are back", map[string]int32{"a": 4, "b": 2, "c": 0, "d": 0})
	f.serves("meanwhile", 4)
	f.blockedIn = nil
	f.settles()
	f.wants("all are back", map[string]int32{"a": 4, "b": 0, "c": 0, "d": 0})
}

func TestACompleteReleaseIsRepairedBesideABlockedCluster(t *testing.T) {
	f := inProduction(t, 3, 2)
	f.blockedIn = nil
	f.settles()
	f.blockedIn = map[string]string{"b": freeze}
	f.releases[len(f.releases)-1].Capacity.Spec.Clusters[2].Percent = 50 // a write of another field manager
	f.settles()
	f.wants("c has its Pods again", map[string]int32{"a": 4, "b": 4, "c": 4, "d": 4})
}

func TestASupersededReleaseStaysWhereABlockHoldsACluster(t *testing.T) {
	f := inProduction(t, 3, 1)
	f.blockedIn = nil
	f.settles()
	f.next(3)
	f.bound, f.untouched, f.blockedIn = 4, nil, map[string]string{"b": freeze}
	for at, more := (position.Position{}), true; more; at, more = at.Next(f.newest().Spec.Environment.Strategy) {
		f.goes(at.Wave, at.Step)
		f.settles()
	}
	f.wants("all others have it", map[string]int32{"a": 4, "c": 4, "d": 4})
	if pods := f.runs["web-1"]["b"].pods; pods != 2 {
		t.Errorf("the superseded Release has %d Pods in b", pods)
	}
	f.blockedIn = nil
	f.settles()
	f.wants("b follows", map[string]int32{"a": 4, "b": 4, "c": 4, "d": 4})
	if len(f.releases) != 2 {
		t.Errorf("%d Releases are left", len(f.releases))
	}
}

// TestWhateverHappensNothingIsRequestedInABlockedCluster is a walk in which blocks that name clusters begin and end.
func TestWhateverHappensNothingIsRequestedInABlockedCluster(t *testing.T) {
	eachWalk(t, 60, 11, 16, func(w *walk, seed uint64) {
		w.keeps, w.blockedIn = seed%2 == 0, map[string]string{}
	}, func(w *walk) {
		w.blocksOrActs()
		for range w.random.IntN(6) {
			w.ticksAroundBlocks()
		}
	})
}

func (w *walk) blocksOrActs() {
	cluster := []string{"a", "b", "c", "d"}[w.random.IntN(4)]
	switch {
	case w.random.IntN(3) > 0:
		w.acts()
	case w.blockedIn[cluster] != "":
		delete(w.blockedIn, cluster)
		w.bound = 4 // it may be between two steps
	default:
		w.blockedIn[cluster] = freeze
	}
	w.note("blocked: %v", w.blockedIn)
}

// ticksAroundBlocks is a tick in which nothing may be requested in blocked clusters.
func (w *walk) ticksAroundBlocks() {
	w.t.Helper()
	w.blocked = ""
	if len(w.blockedIn) > 0 && !position.HasWaves(w.newest()) {
		w.blocked = freeze // block.Verdict.Split: without waves they stop all of it
	}
	before := map[string]string{}
	plan := strategy.Make(w.observed(), metav1.NewTime(w.now))
	for cluster := range w.blockedIn {
		before[cluster] = w.requested(cluster)
	}
	for i, outcome := range plan.Outcomes {
		carryOut(w.releases[i], outcome.Write)
	}
	for i, leaving := range plan.Leaving {
		carryOut(w.leaving[i], leaving.Write)
	}
	for cluster, was := range before {
		if diff := cmp.Diff(was, w.requested(cluster)); diff != "" {
			w.t.Fatalf("requests in %s, which is blocked (-before +after):\n%s", cluster, diff)
		}
	}
	w.tick()
}
