// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestWhateverHappensWavesKeepTheirBoundsAndConverge moves Releases by waves forward and back, replaces and aborts them, and breaks Pods
// and clusters. Every cluster has traffic throughout, and in the end the newest Release has all of it.
func TestWhateverHappensWavesKeepTheirBoundsAndConverge(t *testing.T) {
	eachWalk(t, 100, 0, 12, func(*walk, uint64) {}, func(w *walk) {
		w.acts()
		for range w.random.IntN(6) {
			w.tick()
		}
	})
}

// eachWalk makes a walk for each of some seeds: it begins, does so many things, and comes to a good end. What it did is logged if it fails.
func eachWalk(t *testing.T, seeds, stream uint64, things int, begins func(w *walk, seed uint64), does func(w *walk)) {
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := &walk{fleet: newFleet(t, 1+int(seed%3)), random: rand.New(rand.NewPCG(seed, stream))}
			w.production, w.pace = w.bound, int32(seed%3)
			w.bound++ // one cluster of the first wave
			defer func() {
				if t.Failed() {
					t.Log(strings.Join(w.did, "\n"))
				}
			}()
			begins(w, seed)
			for range things {
				does(w)
			}
			w.ends()
		})
	}
}

type walk struct {
	*fleet
	random     *rand.Rand
	production int
	moves      int
	did        []string
}

func (w *walk) note(format string, args ...any) { w.did = append(w.did, fmt.Sprintf(format, args...)) }

// moveTo moves the newest Release, as a webhook notes it.
func (w *walk) moveTo(to position.Position) {
	from := position.Of(w.newest())
	w.moves++
	w.newest().Annotations[shipper.ReleaseMovedAnnotation] = fmt.Sprintf(
		`{"from":%d,"to":%d,"fromWave":%d,"toWave":%d,"count":%d}`, from.Step, to.Step, from.Wave, to.Wave, w.moves)
	to.Set(w.newest())
	w.untouched = nil
	w.note("%s goes from %v to %v", w.newest().Name, from, to)
}

func (w *walk) acts() {
	at, s := position.Of(w.newest()), w.newest().Spec.Environment.Strategy
	cluster := []string{"a", "b", "c", "d"}[w.random.IntN(4)]
	switch w.random.IntN(8) {
	case 0, 1, 2:
		if to, more := at.Next(s); more {
			w.moveTo(to)
		}
	case 3:
		if to, more := at.Previous(s); more {
			w.moveTo(to)
			w.bound = 4 // it is not bounded
		}
	case 4:
		if len(w.releases) < 4 {
			w.next(w.production)
			w.untouched, w.bound = nil, 4 // those of the one before may be on their way
			w.note("%s is made", w.newest().Name)
		}
	case 5:
		w.down[cluster] = !w.down[cluster]
		w.note("%s is down: %t", cluster, w.down[cluster])
	case 6:
		w.broken[w.newest().Name] = !w.broken[w.newest().Name]
		w.note("%s is broken: %t", w.newest().Name, w.broken[w.newest().Name])
	case 7:
		if len(w.releases) > 1 && !strategy.Complete(w.newest()) {
			w.note("%s is deleted", w.newest().Name)
			w.leave(w.newest().Name)
			w.untouched, w.bound = nil, 4
		}
	}
}

// ends lets everything be well, and moves the newest Release to its end.
func (w *walk) ends() {
	w.bound, w.untouched, w.blocked = 4, nil, ""
	clear(w.down)
	clear(w.broken)
	clear(w.blockedIn)
	for range 3 {
		w.tick()
	}
	if s := w.newest().Spec.Environment.Strategy; len(s.Waves) > 0 {
		for at, more := position.Of(w.newest()), true; more; at, more = at.Next(s) {
			w.moveTo(at)
			w.settles()
			w.isAt(at)
		}
	}
	w.settles()
	w.wants("the end", map[string]int32{"a": 4, "b": 4, "c": 4, "d": 4})
	for name, runs := range w.runs {
		for cluster, here := range runs {
			if name != w.newest().Name && here.pods > 0 {
				w.t.Fatalf("%s has %d Pods in %s:\n%s", name, here.pods, cluster, w.picture())
			}
		}
	}
	if !strategy.Complete(w.newest()) || len(w.leaving) > 0 {
		w.t.Fatalf("complete: %t, %d leave\n%s", strategy.Complete(w.newest()), len(w.leaving), w.picture())
	}
}

func TestABlockHoldsAllClustersOfAWave(t *testing.T) {
	f := newFleet(t, 1)
	f.settles()
	f.goes(0, 2)
	f.settles()
	f.goes(1, 1)
	f.blocked = "rollouts blocked by: default/freeze"
	f.settles()
	f.wants("nothing begins", map[string]int32{"a": 4})
	c := shipper.FindCondition(f.newest().Status.Conditions, shipper.ReleaseStrategyExecuted)
	if want := "step 1 (50/50) of wave production waits: rollouts blocked by: default/freeze"; c.Message != want {
		t.Errorf("it says %q, want %q", c.Message, want)
	}
	f.blocked = ""
	f.settles()
	f.wants("they begin", map[string]int32{"a": 4, "b": 2, "c": 2, "d": 2})
}
