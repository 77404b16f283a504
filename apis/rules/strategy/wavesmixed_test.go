// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/strategy"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// lockstep makes a newest Release without waves.
func (f *fleet) lockstep() {
	f.release(vanguard, 4, "a", "b", "c", "d")
	f.untouched, f.bound = nil, 4
}

// reversed gives the newest Release other waves: the cluster that was first in the Release before is last.
func (f *fleet) reversed() {
	f.newest().Annotations[shipper.ReleaseWavesAnnotation] = waves.Assigned{"a": 1, "b": 0, "c": 0, "d": 0}.String()
	f.untouched, f.bound = nil, 4
	r := f.releases[len(f.releases)-1]
	r.Capacity.Spec.Clusters, r.Traffic.Spec.Clusters = nil, nil
	for _, cluster := range []string{"b", "c", "d"} {
		r.Capacity.Spec.Clusters = append(r.Capacity.Spec.Clusters,
			shipper.ClusterCapacityTarget{Name: cluster, TotalReplicaCount: 4, AsFound: true})
		r.Traffic.Spec.Clusters = append(r.Traffic.Spec.Clusters, shipper.ClusterTrafficTarget{Name: cluster, AsFound: true})
	}
}

// serves checks how many Pods of all Releases are in traffic in each cluster.
func (f *fleet) serves(what string, want int32) {
	f.t.Helper()
	for _, cluster := range []string{"a", "b", "c", "d"} {
		sum := int32(0)
		for _, runs := range f.runs {
			if here := runs[cluster]; here != nil {
				sum += here.traffic
			}
		}
		if sum < want {
			f.t.Errorf("%s: %d Pods are in traffic in %s, want %d:\n%s", what, sum, cluster, want, f.picture())
			return
		}
	}
}

func TestAnAbortAmidWavesReturnsClustersThatTheEarlierReleaseHasNotReached(t *testing.T) {
	for sentence, abort := range map[string]struct {
		next func(f *fleet)
		step int32
	}{
		"of a Release without waves, at half":        {(*fleet).lockstep, 1},
		"of a Release without waves, nearly done":    {(*fleet).lockstep, 2},
		"of a Release with other waves, at half":     {func(f *fleet) { f.next(3); f.reversed() }, 1},
		"of a Release with other waves, nearly done": {func(f *fleet) { f.next(3); f.reversed() }, 2},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := newFleet(t, 3)
			f.settles()
			f.goes(0, 1)
			f.settles()
			earlier := f.newest().Name
			abort.next(f)
			f.settles()
			f.goes(0, abort.step)
			for range 3 { // the last step must not complete it: the earlier Release would be gone
				f.tick()
			}
			if f.newest().Name == earlier || len(f.releases) < 3 {
				t.Skip("the earlier Release is gone")
			}
			f.leave(f.newest().Name)
			f.settles()
			if len(f.leaving) > 0 {
				t.Errorf("%s does not go: %+v\n%s", f.leaving[0].Release.Name, f.leaving[0].Release.Status.Conditions, f.picture())
			}
			f.serves("after the abort", 4)
		})
	}
}

func TestAReleaseWithoutWavesReplacesOneAmidItsWaves(t *testing.T) {
	for _, at := range []position.Position{{Step: 1}, {Step: 2}, {Wave: 1}, {Wave: 1, Step: 1}} {
		f := newFleet(t, 1)
		f.settles()
		f.goes(0, at.Step)
		f.settles()
		if at.Wave > 0 {
			f.goes(0, 2)
			f.settles()
			f.goes(at.Wave, at.Step)
			f.settles()
		}
		f.lockstep()
		f.settles()
		for step := range int32(3) {
			f.goes(0, step)
			f.settles()
			f.serves(fmt.Sprintf("from %v at step %d", at, step), 2)
		}
		f.wants("the end", map[string]int32{"a": 4, "b": 4, "c": 4, "d": 4})
		if !strategy.Complete(f.newest()) || len(f.releases) != 2 {
			t.Errorf("from %v: complete: %t, %d Releases are left", at, strategy.Complete(f.newest()), len(f.releases))
		}
	}
}

func TestAnImmediateRollbackChangesAllClustersAtOnce(t *testing.T) {
	for sentence, tc := range map[string]struct {
		annotations map[string]string
		want        map[string]int32
	}{
		"an immediate rollback": {
			map[string]string{shipper.ReleaseRollbackOfAnnotation: "web-0"}, map[string]int32{"a": 0, "b": 0, "c": 0, "d": 0},
		},
		"a rollback that a user has moved on": {map[string]string{
			shipper.ReleaseRollbackOfAnnotation: "web-0", shipper.ReleaseMovedAnnotation: `{"from":2,"to":2,"toWave":1,"count":1}`,
		}, map[string]int32{"a": 0, "b": 0}},
		"any other Release, of which one cluster of each wave begins": {nil, map[string]int32{"a": 0, "b": 0}},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := newFleet(t, 1)
			maps.Copy(f.newest().Annotations, tc.annotations)
			f.goes(1, 2)
			f.bound, f.pace = 4, 1
			f.tick()
			f.tick()
			f.tick()
			begun := map[string]int32{}
			for _, cluster := range f.releases[1].Installation.Spec.Clusters {
				begun[cluster] = 0
			}
			if diff := cmp.Diff(tc.want, begun); diff != "" {
				t.Errorf("begun (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAHoldDoesNotStopAnAbortOfTheReleaseAfter(t *testing.T) {
	f := newFleet(t, 3)
	f.keeps = true
	f.settles()
	f.goes(0, 1)
	f.settles()
	f.newest().Spec.Hold = "lunch"
	f.next(3)
	f.untouched, f.bound = nil, 4
	f.pace = 1
	f.goes(0, 1)
	for range 3 {
		f.tick()
	}
	t.Log(f.picture())
	if len(f.releases) != 3 {
		t.Fatalf("there are %d Releases", len(f.releases))
	}
	f.leave(f.newest().Name)
	f.settles()
	if len(f.leaving) > 0 {
		t.Errorf("%s does not go: %+v\n%s", f.leaving[0].Release.Name, f.leaving[0].Release.Status.Conditions, f.picture())
	}
	f.serves("after the abort", 4)
}

// TestReleasesOfAllKindsAmidWavesKeepTraffic is a walk whose Releases have waves of their own, or none.
func TestReleasesOfAllKindsAmidWavesKeepTraffic(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := &walk{fleet: newFleet(t, 1+int(seed%3)), random: rand.New(rand.NewPCG(seed, 7))}
			w.production, w.bound, w.pace = 1+int(seed%3), 4, int32(seed%3)
			w.keeps = seed%2 == 0
			defer func() {
				if t.Failed() {
					t.Log(strings.Join(w.did, "\n"))
				}
			}()
			for range 14 {
				w.mixed()
				for range w.random.IntN(6) {
					w.tick()
				}
			}
			w.endsMixed()
		})
	}
}

func (w *walk) mixed() {
	if w.random.IntN(6) > 0 || len(w.releases) >= 4 {
		w.acts()
		w.bound, w.untouched = 4, nil
		return
	}
	switch w.random.IntN(3) {
	case 0:
		w.lockstep()
		w.note("%s is made without waves", w.newest().Name)
	default:
		w.next(w.production)
		as := waves.Assigned{}
		r := w.releases[len(w.releases)-1]
		r.Capacity.Spec.Clusters, r.Traffic.Spec.Clusters = nil, nil
		for _, cluster := range []string{"a", "b", "c", "d"} {
			if as[cluster] = int32(w.random.IntN(2)); as[cluster] == 0 || len(as) == 4 && len(r.Capacity.Spec.Clusters) == 0 {
				as[cluster] = 0 // the number of Pods in a cluster is copied from that in another
				r.Capacity.Spec.Clusters = append(r.Capacity.Spec.Clusters,
					shipper.ClusterCapacityTarget{Name: cluster, TotalReplicaCount: 4, AsFound: true})
				r.Traffic.Spec.Clusters = append(r.Traffic.Spec.Clusters, shipper.ClusterTrafficTarget{Name: cluster, AsFound: true})
			}
		}
		w.newest().Annotations[shipper.ReleaseWavesAnnotation] = as.String()
		w.note("%s is made with waves %s", w.newest().Name, as)
	}
	w.untouched, w.bound = nil, 4
}

func (w *walk) endsMixed() {
	w.bound, w.untouched = 4, nil
	clear(w.down)
	clear(w.broken)
	for range 3 {
		w.tick()
	}
	w.settles()
	if len(w.leaving) > 0 {
		w.t.Fatalf("%s does not go: %s\n%s", w.leaving[0].Release.Name, w.leaving[0].Release.Status.Conditions, w.picture())
	}
	s := w.newest().Spec.Environment.Strategy
	for at, more := position.Of(w.newest()), true; more; at, more = at.Next(s) {
		w.moveTo(at)
		w.settles()
		w.isAt(at)
	}
	w.settles()
	w.wants("the end", map[string]int32{"a": 4, "b": 4, "c": 4, "d": 4})
	if !strategy.Complete(w.newest()) || len(w.leaving) > 0 {
		w.t.Fatalf("complete: %t, %d leave\n%s", strategy.Complete(w.newest()), len(w.leaving), w.picture())
	}
}
