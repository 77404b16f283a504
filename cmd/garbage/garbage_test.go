// SPDX-License-Identifier: Apache-2.0

package garbage

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

const mib = 1 << 20

func TestGarbageIsPlentyWhileAProcessWorks(t *testing.T) {
	for sentence, tc := range map[string]struct {
		live uint64
		want int
	}{
		"nothing is in use yet":                    {0, 400},
		"little is in use, and four times as much": {32 * mib, 400},
		"as much as there may be is in use":        {256 * mib, 100},
		"a live heap of more than twice the bound": {600 * mib, 50},
	} {
		k := keeper{ample: 256 * mib, percent: minPercent}
		if rests := k.look(seen{allocated: 100 * mib, live: tc.live}, time.Unix(0, 0)); rests || k.percent != tc.want {
			t.Errorf("%s: %d %%, rests: %t", sentence, k.percent, rests)
		}
	}
}

// TestAProcessThatRestsGivesBackOnce has a process that is busy for ten seconds, rests, and is busy once more later.
func TestAProcessThatRestsGivesBackOnce(t *testing.T) {
	type moment struct {
		second  int
		percent int
		rests   bool
	}
	k := keeper{ample: 256 * mib, percent: maxPercent, worked: time.Unix(0, 0)}
	is := seen{live: 200 * mib}
	var got []moment
	for second := 1; second <= 120; second++ {
		switch {
		case second <= 10, second == 80:
			is.allocated += 20 * mib // in five seconds as much as there may be at rest
		default:
			is.allocated += 19 * mib
		}
		was := k.percent
		if rests := k.look(is, time.Unix(int64(second), 0)); rests || k.percent != was {
			got = append(got, moment{second, k.percent, rests})
		}
	}
	want := []moment{{1, 128, false}, {40, 50, true}, {80, 128, false}, {110, 50, true}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(moment{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestAProcessThatRestsGivesBackHoweverMuchItHas has a live heap so large that busy and idle processes have the same
// percentage.
func TestAProcessThatRestsGivesBackHoweverMuchItHas(t *testing.T) {
	k := keeper{ample: 96 * mib, percent: maxPercent, worked: time.Unix(0, 0)}
	var got []int
	for second := 1; second <= 120; second++ {
		if k.look(seen{live: 400 * mib}, time.Unix(int64(second), 0)) {
			got = append(got, second)
		}
	}
	if diff := cmp.Diff([]int{30}, got); diff != "" {
		t.Errorf("gives back in the second -want +got:\n%s", diff)
	}
}

// TestGOGCInTheEnvironmentWins is not parallel, as the next is not: there is one collector in a process.
func TestGOGCInTheEnvironmentWins(t *testing.T) {
	t.Setenv("GOGC", "70")
	before := debug.SetGCPercent(70)
	Tend(t.Context(), clocktesting.NewFakeClock(time.Unix(0, 0)), mib)
	if got := debug.SetGCPercent(before); got != 70 {
		t.Errorf("%d %%", got)
	}
}

func TestTheDecisionIsSetInTheCollector(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	percent := func() uint64 { // debug.SetGCPercent returns only the previous value
		sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go Tend(ctx, clock.RealClock{}, mib)
		synctest.Wait()
		if got := percent(); got != maxPercent {
			t.Errorf("begins with %d %%", got)
		}
		time.Sleep(idleInterval + look)
		synctest.Wait()
		if got := percent(); got != minPercent {
			t.Errorf("rests with %d %%", got)
		}
		cancel()
	})
}
