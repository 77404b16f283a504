// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pods makes n Pods named prefix-00, prefix-01, …, like the given one.
func pods(prefix string, n int, like Pod) []Pod {
	out := make([]Pod, n)
	for i := range out {
		out[i] = like
		out[i].Name = fmt.Sprintf("%s-%02d", prefix, i)
	}
	return out
}

// names are the names of the first n Pods of that prefix.
func names(prefix string, n int) []string {
	var out []string
	for _, pod := range pods(prefix, n, Pod{}) {
		out = append(out, pod.Name)
	}
	return out
}

var (
	with    = Pod{Ready: true, Labelled: true, Serving: true}
	without = Pod{Ready: true}
)

// TestGoldenTable holds the values every implementation of the API has to give: releases of one Application with a
// weight, Pods with traffic and Pods without.
func TestGoldenTable(t *testing.T) {
	type release struct {
		weight        uint32
		with, without int
	}
	type want struct {
		ready           bool
		achieved        uint32
		enable, disable int
	}
	tests := map[string]struct {
		releases []release
		want     []want
	}{
		"nothing at all": {[]release{{0, 0, 0}}, []want{{ready: true}}},
		"no weight and a pod without traffic": {
			[]release{{0, 0, 1}}, []want{{ready: true}},
		},
		"all pods get traffic": {
			[]release{{1, 0, 10}}, []want{{enable: 10}},
		},
		"all pods have traffic": {
			[]release{{1, 10, 0}}, []want{{ready: true, achieved: 1}},
		},
		"half of the pods have traffic": {
			[]release{{1, 5, 5}}, []want{{achieved: 1, enable: 5}},
		},
		"weight taken away": {
			[]release{{0, 5, 0}}, []want{{disable: 5}},
		},
		"all traffic moves to the other": {
			[]release{{0, 10, 0}, {1, 0, 10}},
			[]want{{achieved: 1, disable: 10}, {enable: 10}},
		},
		"five equals": {
			[]release{{10, 5, 0}, {10, 5, 0}, {10, 5, 0}, {10, 5, 0}, {10, 5, 0}},
			[]want{
				{ready: true, achieved: 10}, {ready: true, achieved: 10}, {ready: true, achieved: 10},
				{ready: true, achieved: 10}, {ready: true, achieved: 10},
			},
		},
		"a third and two thirds": {
			[]release{{10, 10, 0}, {20, 10, 0}},
			[]want{{achieved: 15, disable: 3}, {ready: true, achieved: 15}},
		},
		"one in ten thousand": {
			[]release{{1, 10, 0}, {10000, 10, 0}},
			[]want{{achieved: 5001, disable: 9}, {ready: true, achieved: 5001}},
		},
		"half the weight on one pod": {
			[]release{{100, 10, 0}, {100, 1, 0}},
			[]want{{achieved: 182, disable: 4}, {ready: true, achieved: 18}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var total uint64
			var all int
			for _, r := range tc.releases {
				total += uint64(r.weight)
				all += r.with + r.without
			}
			var got []want
			for _, r := range tc.releases {
				plan := For(Release{
					Weight: r.weight, TotalWeight: total, AppPods: all,
					Pods: append(pods("with", r.with, with), pods("without", r.without, without)...),
				})
				got = append(got, want{plan.Ready(), plan.Achieved, len(plan.Enable), len(plan.Disable)})
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestFor(t *testing.T) {
	tests := map[string]struct {
		release Release
		want    Plan
	}{
		"none of the pods asked for is seen": {Release{Weight: 1, TotalWeight: 1, Awaited: true}, Plan{Late: true}},
		"no pods are asked for":              {Release{Weight: 1, TotalWeight: 1}, Plan{}},
		"pods are asked for, and no traffic": {Release{TotalWeight: 1, AppPods: 1, Awaited: true}, Plan{}},
		"a labelled pod that is not ready is waited for": {
			Release{Weight: 10, TotalWeight: 10, AppPods: 2, Pods: []Pod{
				{Name: "a", Ready: true, Labelled: true, Serving: true},
				{Name: "b", Labelled: true},
			}},
			Plan{Needed: 2, Labelled: 2, Serving: 1, NotReady: 1, Achieved: 5},
		},
		"two of three ready": {
			Release{Weight: 10, TotalWeight: 10, AppPods: 3, Pods: []Pod{
				{Name: "a", Ready: true, Labelled: true, Serving: true},
				{Name: "b", Ready: true, Labelled: true, Serving: true},
				{Name: "c", Labelled: true},
			}},
			Plan{Needed: 3, Labelled: 3, Serving: 2, NotReady: 1, Achieved: 7},
		},
		"pods of others count in the application only": {
			Release{Weight: 10, TotalWeight: 10, AppPods: 6, Pods: pods("own", 5, without)},
			Plan{Needed: 5, Coming: 5, Enable: names("own", 5)},
		},
		"sixty of a hundred with five pods of ten": {
			Release{Weight: 60, TotalWeight: 100, AppPods: 10, Pods: pods("own", 5, with)},
			Plan{Needed: 5, Labelled: 5, Serving: 5, Achieved: 50},
		},
		"forty of a hundred with five pods of ten": {
			Release{Weight: 40, TotalWeight: 100, AppPods: 10, Pods: pods("own", 5, without)},
			Plan{Needed: 4, Coming: 4, Enable: names("own", 4)},
		},
		"ready pods are let in before others": {
			Release{Weight: 1, TotalWeight: 2, AppPods: 4, Pods: []Pod{
				{Name: "a"}, {Name: "b", Ready: true}, {Name: "c"}, {Name: "d", Ready: true},
			}},
			Plan{Needed: 2, Coming: 2, Enable: []string{"b", "d"}},
		},
		"pods that are not ready are taken out before others": {
			Release{Weight: 1, TotalWeight: 2, AppPods: 4, Pods: []Pod{
				{Name: "a", Ready: true, Labelled: true, Serving: true}, {Name: "b", Labelled: true},
				{Name: "c", Labelled: true}, {Name: "d", Ready: true, Labelled: true, Serving: true},
			}},
			Plan{Needed: 2, Labelled: 4, Serving: 2, NotReady: 2, Disable: []string{"b", "c"}, Achieved: 1},
		},
		"a ready pod takes the place of one that stopped being ready": {
			Release{Weight: 1, TotalWeight: 2, AppPods: 4, Pods: []Pod{
				{Name: "a", Labelled: true}, {Name: "b", Ready: true, Labelled: true, Serving: true},
				{Name: "c", Ready: true}, {Name: "d"},
			}},
			Plan{
				Needed: 2, Labelled: 2, Serving: 1, NotReady: 1, Coming: 1, Achieved: 1,
				Enable: []string{"c"}, Disable: []string{"a"},
			},
		},
		"a pod that became ready again does not take its place back": {
			Release{Weight: 1, TotalWeight: 2, AppPods: 4, Pods: []Pod{
				{Name: "a", Ready: true}, {Name: "b", Ready: true, Labelled: true, Serving: true},
				{Name: "c", Ready: true, Labelled: true, Serving: true}, {Name: "d"},
			}},
			Plan{Needed: 2, Labelled: 2, Serving: 2, Achieved: 1},
		},
		"pods that are gone count nowhere, labelled and serving or not": {
			Release{Weight: 10, TotalWeight: 10, AppPods: 1, Pods: []Pod{
				{Name: "a", Gone: true, Ready: true, Labelled: true, Serving: true},
				{Name: "b", Gone: true},
				{Name: "c", Ready: true, Labelled: true, Serving: true},
			}},
			Plan{Needed: 1, Labelled: 1, Serving: 1, Achieved: 10},
		},
		"a pod that lost its label and still serves is waited for": {
			Release{Weight: 0, TotalWeight: 10, AppPods: 2, Pods: []Pod{{Name: "a", Ready: true, Serving: true}}},
			Plan{Serving: 1, Achieved: 5},
		},
		"pods leave as far as those of others have come, the ones that are not ready first": {
			Release{TotalWeight: 10, AppPods: 8, Coming: 2, Pods: []Pod{
				{Name: "a", Ready: true, Labelled: true, Serving: true}, {Name: "b", Labelled: true},
				{Name: "c", Ready: true, Labelled: true, Serving: true}, {Name: "d", Ready: true, Labelled: true, Serving: true},
			}},
			Plan{Labelled: 4, Serving: 3, NotReady: 1, Held: 2, Disable: []string{"b", "d"}, Achieved: 4},
		},
		"pods that are needed do not count as held": {
			Release{Weight: 10, TotalWeight: 10, AppPods: 2, Coming: 2, Pods: []Pod{
				{Name: "a", Ready: true, Labelled: true, Serving: true}, {Name: "b", Ready: true, Labelled: true, Serving: true},
			}},
			Plan{Needed: 2, Labelled: 2, Serving: 2, Achieved: 10},
		},
		"pods that are ready and not in endpoints yet are coming": {
			Release{Weight: 10, TotalWeight: 10, AppPods: 4, Pods: []Pod{
				{Name: "a", Ready: true, Labelled: true, Serving: true}, {Name: "b", Ready: true, Labelled: true},
				{Name: "c", Ready: true}, {Name: "d"},
			}},
			Plan{Needed: 4, Labelled: 2, Serving: 1, Coming: 2, Enable: []string{"c", "d"}, Achieved: 3},
		},
		"the weight achieved fits its field": {
			Release{Weight: math.MaxUint32, TotalWeight: 2 * math.MaxUint32, AppPods: 1, Pods: pods("own", 1, with)},
			Plan{Needed: 1, Labelled: 1, Serving: 1, Achieved: math.MaxUint32},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, For(tc.release)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestPlanIsStable carries plans out and plans again: nothing more may move, whatever order the Pods come in.
func TestPodsStayInTrafficWhileOthersLackPods(t *testing.T) {
	serves := Pod{Ready: true, Labelled: true, Serving: true}
	for name, selects := range map[string]Selection{"by label": {ByLabel: true}, "by release": {Release: "old"}} {
		app := Application{SelectByRelease: true, Selects: selects, Serving: 4, AppPods: 5, Releases: []Release{
			{Name: "old", Weight: 0, Pods: pods("o", 4, serves)},
			{Name: "new", Weight: 1, Lacks: true, Pods: pods("n", 1, Pod{Ready: true})},
			{Name: "newer", Weight: 1, Pods: []Pod{}},
		}}
		if plan := app.For("old"); plan.Held != 4 || plan.Moves() && len(plan.Disable) > 0 {
			t.Errorf("%s: held %d, disables %v; want all 4 held", name, plan.Held, plan.Disable)
		}
		app.Releases[1].Weight = 0
		if plan := app.For("old"); name == "by label" && len(plan.Disable) != 4 {
			t.Errorf("%s: disables %v, though only a Release without weight lacks Pods", name, plan.Disable)
		}
	}
}

func TestPlanIsStable(t *testing.T) {
	for weight := uint32(0); weight <= 10; weight++ {
		release := Release{Weight: weight, TotalWeight: 10, AppPods: 12, Pods: append(append(
			pods("a", 4, Pod{Labelled: true}), pods("b", 4, without)...), pods("c", 4, with)...)}
		plan := For(release)
		for i := range release.Pods {
			for _, name := range plan.Enable {
				release.Pods[i].Labelled = release.Pods[i].Labelled || release.Pods[i].Name == name
			}
			for _, name := range plan.Disable {
				release.Pods[i].Labelled = release.Pods[i].Labelled && release.Pods[i].Name != name
			}
		}
		for i, j := 0, len(release.Pods)-1; i < j; i, j = i+1, j-1 {
			release.Pods[i], release.Pods[j] = release.Pods[j], release.Pods[i]
		}
		if again := For(release); again.Moves() || again.Labelled != again.Needed {
			t.Errorf("weight %d: a plan carried out is planned again: %+v", weight, again)
		}
	}
}

func TestNeeded(t *testing.T) {
	tests := map[string]struct {
		own, all int
		weight   uint32
		total    uint64
		want     int
	}{
		"20 pods at 55 of 100 are 11, not 12":  {20, 20, 55, 100, 11},
		"25 pods at 28 of 100 are 7, not 8":    {25, 25, 28, 100, 7},
		"25 pods at 56 of 100 are 14, not 15":  {25, 25, 56, 100, 14},
		"a fraction of a pod is a whole one":   {10, 10, 1, 1000, 1},
		"never more than its own":              {3, 100, 50, 100, 3},
		"no weight anywhere":                   {10, 10, 0, 0, 0},
		"no weight here":                       {10, 10, 0, 100, 0},
		"no pods":                              {0, 0, 10, 10, 0},
		"counts that make no sense are none":   {-1, -1, 10, 10, 0},
		"the largest weights do not overflow":  {1 << 20, 1 << 21, math.MaxUint32, 2 * math.MaxUint32, 1 << 20},
		"the largest counts do not overflow":   {math.MaxInt32, math.MaxInt32, math.MaxUint32, math.MaxUint32, math.MaxInt32},
		"the whole weight is all of the pods":  {7, 7, 100, 100, 7},
		"half a pod more is one more of seven": {7, 7, 51, 100, 4},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Needed(tc.own, tc.all, tc.weight, tc.total); got != tc.want {
				t.Errorf("Needed(%d, %d, %d, %d) = %d, want %d", tc.own, tc.all, tc.weight, tc.total, got, tc.want)
			}
		})
	}
}

// TestNeededIsExact compares with the definition over every percentage of up to 100 Pods.
func TestNeededIsExact(t *testing.T) {
	for all := 0; all <= 100; all++ {
		for weight := uint32(0); weight <= 100; weight++ {
			got := Needed(all, all, weight, 100)
			if product := all * int(weight); got*100 < product || (got-1)*100 >= product && got > 0 {
				t.Fatalf("Needed(%d, %d, %d, 100) = %d is not ceil(%d / 100)", all, all, weight, got, product)
			}
		}
	}
}

func TestReleasesAsFoundKeepTheirPods(t *testing.T) {
	mixed := []Pod{
		{Name: "a", Ready: true, Labelled: true, Serving: true}, {Name: "b", Labelled: true},
		{Name: "c", Ready: true}, {Name: "d", Labelled: true, Gone: true},
	}
	got := For(Release{AsFound: true, Weight: 7, TotalWeight: 7, AppPods: 6, AppLabelled: 3, Pods: mixed})
	want := Plan{Needed: 2, Labelled: 2, Serving: 1, NotReady: 1, Achieved: 34}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestFoundIsAWeightThatTakesNothingAway gives each Release the result of Found as its weight.
func TestFoundIsAWeightThatTakesNothingAway(t *testing.T) {
	type release struct{ own, labelled int }
	tests := map[string]struct {
		releases []release
		want     []uint32
		needed   []int
	}{
		"nothing takes traffic":            {[]release{{4, 0}}, []uint32{0}, []int{0}},
		"there are no pods":                {[]release{{0, 0}}, []uint32{0}, []int{0}},
		"one takes everything":             {[]release{{4, 4}, {0, 0}}, []uint32{100, 0}, []int{4, 0}},
		"half and half":                    {[]release{{2, 2}, {2, 2}}, []uint32{50, 50}, []int{2, 2}},
		"a third and two thirds":           {[]release{{1, 1}, {2, 2}}, []uint32{34, 67}, []int{1, 2}},
		"one waits on the stage":           {[]release{{4, 4}, {1, 0}}, []uint32{100, 0}, []int{4, 0}},
		"one in eight, with all its pods":  {[]release{{4, 4}, {4, 1}}, []uint32{88, 13}, []int{4, 2}},
		"neither has all its pods in":      {[]release{{4, 3}, {4, 1}}, []uint32{38, 13}, []int{4, 3}},
		"three, two of them with all pods": {[]release{{4, 4}, {2, 2}, {4, 1}}, []uint32{70, 50, 10}, []int{4, 2, 1}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			all, in := 0, 0
			for _, r := range tc.releases {
				all, in = all+r.own, in+r.labelled
			}
			var got []uint32
			var sum uint64
			for _, r := range tc.releases {
				got = append(got, Found(r.labelled, r.own, all, in))
				sum += uint64(got[len(got)-1])
			}
			var needed []int
			for i, r := range tc.releases {
				needed = append(needed, Needed(r.own, all, got[i], sum))
				if needed[i] < r.labelled {
					t.Errorf("of %d pods in traffic %d are needed", r.labelled, needed[i])
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("weights: -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.needed, needed); diff != "" {
				t.Errorf("needed: -want +got:\n%s", diff)
			}
		})
	}
}
