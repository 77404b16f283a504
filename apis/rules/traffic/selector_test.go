// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	shared = Selection{ByLabel: true}
	toOld  = Selection{Release: "old"}
	toNew  = Selection{Release: "new"}
)

func TestNext(t *testing.T) {
	serves := Pod{Ready: true, Serving: true}
	shadow := func(of Selection, lists ...[]string) *ShadowService {
		out := &ShadowService{Selects: of, Serving: map[string]bool{}}
		for _, name := range slices.Concat(lists...) {
			out.Serving[name] = true
		}
		return out
	}
	tests := map[string]struct {
		app  Application
		want SelectorChange
	}{
		"one has all traffic by label, and gets the Service": {
			Application{Selects: shared, Serving: 2, Releases: []Release{
				{Name: "old", Weight: 1, Pods: pods("o", 2, with)}, {Name: "new", Pods: pods("n", 1, without)},
			}},
			SelectorChange{Select: &toOld},
		},
		"no Pod serves yet, so the Service changes at once": {
			Application{Selects: shared, Releases: []Release{{Name: "old", Weight: 1, Pods: pods("o", 2, Pod{})}}},
			SelectorChange{Select: &toOld},
		},
		"a Release without Pods needs no Service": {
			Application{Selects: shared, Releases: []Release{{Name: "old", Weight: 1}}}, SelectorChange{},
		},
		"the Release that the Service selects keeps it without any Pod": {
			Application{Selects: toOld, Releases: []Release{{Name: "old", Weight: 1}}}, SelectorChange{},
		},
		"the Release that the Service selects keeps it, whatever the labels of others are": {
			Application{Selects: toOld, Serving: 1, Releases: []Release{
				{Name: "old", Weight: 1, Pods: pods("o", 2, serves)}, {Name: "new", Pods: pods("n", 1, with)},
			}}, SelectorChange{},
		},
		"ready Pods that do not serve need a shadow Service while others serve": {
			Application{Selects: shared, Serving: 2, Releases: []Release{
				{Name: "old", Pods: pods("o", 2, with)}, {Name: "new", Weight: 1, Pods: pods("n", 2, without)},
			}},
			SelectorChange{Shadow: &toNew},
		},
		"the shadow Service lacks a Pod": {
			Application{
				Selects: toOld, Serving: 2, Shadow: shadow(toNew, names("n", 1)), Releases: []Release{
					{Name: "old", Pods: pods("o", 2, serves)}, {Name: "new", Weight: 1, Pods: pods("n", 2, without)},
				},
			},
			SelectorChange{Shadow: &toNew},
		},
		"the shadow Service has all ready Pods": {
			Application{
				Selects: toOld, Serving: 2, Shadow: shadow(toNew, names("n", 2)), Releases: []Release{
					{Name: "old", Pods: pods("o", 2, serves)}, {Name: "new", Weight: 1, Pods: pods("n", 2, without)},
				},
			},
			SelectorChange{Shadow: &toNew, Select: &toNew},
		},
		"it lacks Pods that it is asked to have, and others serve": {
			Application{
				Selects: toOld, Serving: 2, Shadow: shadow(toNew, names("n", 1)), Releases: []Release{
					{Name: "old", Pods: pods("o", 2, serves)}, {Name: "new", Weight: 1, Lacks: true, Pods: pods("n", 1, without)},
				},
			},
			SelectorChange{Shadow: &toNew},
		},
		"it lacks Pods, some of it serve by label, and others do, too": {
			Application{
				Selects: shared, Serving: 3, Releases: []Release{
					{Name: "old", Pods: pods("o", 2, with)}, {Name: "new", Weight: 1, Lacks: true, Pods: pods("n", 1, with)},
				},
			},
			SelectorChange{Shadow: &toNew},
		},
		"it lacks Pods, and no others serve": {
			Application{
				Selects: shared, Serving: 1, Releases: []Release{{Name: "new", Weight: 1, Lacks: true, Pods: pods("n", 1, with)}},
			},
			SelectorChange{Select: &toNew},
		},
		"one of several lacks Pods, and the other keeps all of its in traffic": {
			Application{
				Selects: toOld, Serving: 4, AppPods: 5, Shadow: shadow(shared, names("o", 4), names("n", 1)), Releases: []Release{
					{Name: "old", Weight: 1, Pods: pods("o", 4, with)},
					{Name: "new", Weight: 1, Lacks: true, Pods: pods("n", 1, Pod{Ready: true, Labelled: true})},
				},
			},
			SelectorChange{Shadow: &shared, Select: &shared},
		},
		"a shadow Service with another selector does not count": {
			Application{
				Selects: toOld, Serving: 2, Shadow: shadow(shared, names("n", 2)), Releases: []Release{
					{Name: "old", Pods: pods("o", 2, serves)}, {Name: "new", Weight: 1, Pods: pods("n", 2, without)},
				},
			},
			SelectorChange{Shadow: &toNew},
		},
		"none of its Pods is ready, and others serve": {
			Application{Selects: shared, Serving: 2, Releases: []Release{
				{Name: "old", Pods: pods("o", 2, with)}, {Name: "new", Weight: 1, Pods: pods("n", 2, Pod{})},
			}},
			SelectorChange{},
		},
		"none of its Pods is seen yet, and others serve": {
			Application{Selects: toOld, Serving: 2, Releases: []Release{
				{Name: "old", Pods: pods("o", 2, serves)}, {Name: "new", Weight: 1, Awaited: true},
			}},
			SelectorChange{},
		},
		"none of its Pods is seen yet, and others serve by label": {
			Application{Selects: shared, Serving: 2, Releases: []Release{
				{Name: "old", Pods: pods("o", 2, with)}, {Name: "new", Weight: 1, Awaited: true},
			}},
			SelectorChange{},
		},
		"none of its Pods is seen yet, and no other Pod serves": {
			Application{Selects: shared, Releases: []Release{{Name: "new", Weight: 1, Awaited: true}}}, SelectorChange{},
		},
		"it wants no Pods, and others lose traffic": {
			Application{Selects: toOld, Serving: 2, Shadow: shadow(shared), Releases: []Release{
				{Name: "old", Pods: pods("o", 2, serves)}, {Name: "new", Weight: 1},
			}},
			SelectorChange{Shadow: &shared, Select: &shared},
		},
		"no Pod of any Release with a weight is seen yet": {
			Application{Selects: toOld, Serving: 2, Shadow: shadow(shared), Releases: []Release{
				{Name: "old", Pods: pods("o", 2, serves)},
				{Name: "new", Weight: 1, Awaited: true}, {Name: "newer", Weight: 1, Awaited: true},
			}},
			SelectorChange{Shadow: &shared},
		},
		"a Pod of a hook matches its labels": {
			Application{Selects: shared, Serving: 2, Releases: []Release{{Name: "old", Weight: 1, HookPods: true, Pods: pods("o", 2, with)}}},
			SelectorChange{},
		},
		"foreign Pods carry the label of the Release that serves": {
			Application{Selects: toOld, Serving: 2, AppPods: 2, Foreign: pods("f", 1, Pod{Ready: true, Serving: true, Labelled: true}),
				Releases: []Release{{Name: "old", Weight: 1, Foreign: true, Pods: pods("o", 2, serves)}}},
			SelectorChange{Enable: []string{"o-00", "o-01"}, Disable: []string{"f-00"}, Shadow: &shared},
		},
		"foreign Pods carry the label of the Release that is to serve": {
			Application{Selects: toOld, Serving: 2, AppPods: 4, Foreign: pods("f", 1, without), Releases: []Release{
				{Name: "old", Pods: pods("o", 2, serves)}, {Name: "new", Weight: 1, Foreign: true, Pods: pods("n", 2, without)},
			}},
			SelectorChange{Enable: []string{"n-00", "n-01"}, Shadow: &shared},
		},
		"foreign Pods lose the label while the Service selects by it": {
			Application{Selects: shared, Serving: 2, AppPods: 2, Foreign: pods("f", 2, Pod{Labelled: true}),
				Releases: []Release{{Name: "old", Weight: 1, Foreign: true, Pods: pods("o", 2, with)}}},
			SelectorChange{Disable: []string{"f-00", "f-01"}},
		},
		"foreign Pods keep the label where no weight was requested": {
			Application{Selects: shared, Serving: 2, AppPods: 2, Foreign: pods("f", 1, Pod{Labelled: true}),
				Releases: []Release{{Name: "old", AsFound: true, Foreign: true, Pods: pods("o", 2, with)}}},
			SelectorChange{},
		},
		"foreign Pods that are gone lose nothing": {
			Application{Selects: shared, Serving: 2, AppPods: 2, Foreign: pods("f", 1, Pod{Labelled: true, Gone: true}),
				Releases: []Release{{Name: "old", Weight: 1, HookPods: true, Pods: pods("o", 2, with)}}},
			SelectorChange{},
		},
		"before traffic is shared, Pods that will serve get the label and others lose it": {
			Application{
				Selects: toOld, Serving: 2, AppPods: 5, Strays: pods("s", 1, Pod{Labelled: true}), Releases: []Release{
					{Name: "old", Weight: 1, Pods: pods("o", 2, serves)}, {Name: "new", Weight: 1, Pods: pods("n", 1, without)},
					{Name: "older", Pods: pods("x", 1, Pod{Ready: true, Labelled: true})},
				},
			},
			SelectorChange{Enable: []string{"n-00", "o-00", "o-01"}, Disable: []string{"s-00", "x-00"}, Shadow: &shared},
		},
		"labelled, without a shadow Service": {
			Application{Selects: toOld, Serving: 2, AppPods: 3, Shadow: shadow(shared, names("o", 2)), Releases: []Release{
				{Name: "old", Weight: 1, Pods: pods("o", 2, with)}, {Name: "new", Weight: 1, Pods: pods("n", 1, Pod{Ready: true, Labelled: true})},
			}},
			SelectorChange{Shadow: &shared},
		},
		"the shadow Service has a Pod too many": {
			Application{
				Selects: toOld, Serving: 2, AppPods: 3, Shadow: shadow(shared, names("o", 2), names("n", 1), names("x", 1)),
				Releases: []Release{
					{Name: "old", Weight: 1, Pods: pods("o", 2, with)}, {Name: "new", Weight: 1, Pods: pods("n", 1, Pod{Ready: true, Labelled: true})},
				},
			},
			SelectorChange{Shadow: &shared},
		},
		"labelled, and the shadow Service has the Pods: traffic is shared": {
			Application{
				Selects: toOld, Serving: 2, AppPods: 3, Shadow: shadow(shared, names("o", 2), names("n", 1)), Releases: []Release{
					{Name: "old", Weight: 1, Pods: pods("o", 2, with)}, {Name: "new", Weight: 1, Pods: pods("n", 1, Pod{Ready: true, Labelled: true})},
				},
			},
			SelectorChange{Shadow: &shared, Select: &shared},
		},
		"no Pod that would serve is ready, and others serve": {
			Application{
				Selects: toOld, Serving: 2, AppPods: 3, Shadow: shadow(shared), Releases: []Release{
					{Name: "old", Pods: pods("o", 2, serves)}, {Name: "new", Weight: 1, Pods: pods("n", 1, Pod{Labelled: true})},
					{Name: "newer", Weight: 1},
				},
			},
			SelectorChange{Shadow: &shared},
		},
		"no Release has a weight any more": {
			Application{Selects: toOld, Serving: 2, AppPods: 2, Shadow: shadow(shared), Releases: []Release{
				{Name: "old", Pods: pods("o", 2, serves)},
			}},
			SelectorChange{Shadow: &shared, Select: &shared},
		},
		"no Release has a weight any more, nor traffic as found": {
			Application{SelectByRelease: true, Selects: toOld, Serving: 2, AppPods: 3, Shadow: shadow(shared), Releases: []Release{
				{Name: "old", Pods: pods("o", 2, serves)}, {Name: "new", AsFound: true, Awaited: true, Pods: pods("n", 1, without)},
			}},
			SelectorChange{Shadow: &shared, Select: &shared},
		},
		"no Pod of the Release as found is ready, and others serve": {
			Application{SelectByRelease: true, Serving: 1, AppPods: 3, Shadow: shadow(shared), Strays: pods("s", 1, serves), Releases: []Release{
				{Name: "old", AsFound: true, Pods: pods("o", 2, Pod{Labelled: true})}, {Name: "new", Pods: pods("n", 1, without)},
			}},
			SelectorChange{Shadow: &shared},
		},
		"the Release that the Service selects is deleted, and no other has a weight yet": {
			Application{Selects: toOld, Serving: 2, Strays: pods("o", 2, serves), Releases: []Release{{Name: "new", Pods: pods("n", 2, without)}}},
			SelectorChange{},
		},
		"a foreign selector is replaced, but needs the shadow Service first": {
			Application{Serving: 1, Releases: []Release{{Name: "old", Weight: 1, Pods: pods("o", 2, without)}}}, SelectorChange{Shadow: &toOld},
		},
		"without requested weights nothing changes": {
			Application{Selects: toOld, Serving: 1, Releases: []Release{
				{Name: "old", AsFound: true, Pods: pods("o", 2, serves)}, {Name: "new", AsFound: true, Pods: pods("n", 2, with)},
			}},
			SelectorChange{},
		},
		"an unknown Release keeps its traffic, so the Service selects by label": {
			Application{Selects: shared, Serving: 4, AppPods: 4, Releases: []Release{
				{Name: "old", Weight: 1, Pods: pods("o", 2, with)},
				{Name: "new", AsFound: true, Unknown: true, Pods: pods("n", 2, with)},
			}},
			SelectorChange{},
		},
		"the Service selects an unknown Release, and another wants traffic": {
			Application{Selects: toOld, Serving: 2, AppPods: 4, Releases: []Release{
				{Name: "new", Weight: 1, Pods: pods("n", 2, without)},
				{Name: "old", AsFound: true, Unknown: true, Pods: pods("o", 2, serves)},
			}},
			SelectorChange{Enable: []string{"n-00", "n-01", "o-00", "o-01"}, Shadow: &shared},
		},
		"an unknown Release without Pods does not count": {
			Application{Selects: shared, Serving: 2, AppPods: 4, Releases: []Release{
				{Name: "old", Weight: 1, Pods: pods("o", 2, with)},
				{Name: "new", AsFound: true, Unknown: true, Pods: pods("n", 2, without)},
			}},
			SelectorChange{Select: &toOld},
		},
		"a Release as found keeps its traffic when another gets some": {
			Application{Selects: toOld, Serving: 2, AppPods: 4, Releases: []Release{
				{Name: "old", AsFound: true, Pods: pods("o", 2, serves)}, {Name: "new", Weight: 1, Pods: pods("n", 2, without)},
			}},
			SelectorChange{Enable: []string{"n-00", "n-01", "o-00", "o-01"}, Shadow: &shared},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.app.SelectByRelease = true
			if diff := cmp.Diff(tc.want, tc.app.Next()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWithoutSelectionByReleaseServicesSelectByLabel(t *testing.T) {
	app := Application{Selects: toOld, Serving: 2, AppPods: 2, Releases: []Release{
		{Name: "old", Weight: 1, Pods: pods("o", 2, Pod{Ready: true, Serving: true})},
	}}
	if diff := cmp.Diff(SelectorChange{Enable: names("o", 2), Shadow: &shared}, app.Next()); diff != "" {
		t.Errorf("selected by release: -want +got:\n%s", diff)
	}
	for _, is := range []Selection{shared, {}} {
		app.Selects = is
		if diff := cmp.Diff(SelectorChange{}, app.Next()); diff != "" {
			t.Errorf("%v: -want +got:\n%s", is, diff)
		}
		if got := app.For("old").Enable; len(got) != 2 {
			t.Errorf("%v: only %v get the label", is, got)
		}
		app.Foreign = []Pod{{Name: "x", Labelled: true}}
		if diff := cmp.Diff(SelectorChange{Disable: []string{"x"}}, app.Next()); diff != "" {
			t.Errorf("%v, with a foreign Pod: -want +got:\n%s", is, diff)
		}
		app.Foreign = nil
	}
}

func TestPlansOfAnApplicationSelectedByRelease(t *testing.T) {
	app := Application{SelectByRelease: true, Selects: toOld, Serving: 3, AppPods: 6, Releases: []Release{
		{Name: "old", Weight: 1, Pods: append(pods("o", 3, Pod{Ready: true, Serving: true}), Pod{Name: "late"})},
		{Name: "new", Pods: pods("n", 2, Pod{Ready: true, Labelled: true})},
	}}
	want := map[string]Plan{
		"old": {Needed: 4, Labelled: 4, Serving: 3, NotReady: 1, Achieved: 1}, "new": {}, "unknown": {},
	}
	for name := range want {
		if diff := cmp.Diff(want[name], app.For(name)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	app.Releases[1].Weight = 1
	if got := app.For("new"); got.Ready() || got.Moves() || got.Needed != 2 {
		t.Errorf("while the Service's selector changes: %+v", got)
	}
	if got := app.Leader(); got != "new" { // of two equals the first by name
		t.Errorf("%s leads", got)
	}
	app.Releases[1].Unknown = true
	if got := app.Leader(); got != "old" {
		t.Errorf("%s leads, which is unknown", got)
	}
	app.Releases[0].AsFound, app.Releases[1].AsFound = true, true
	if got := app.For("old"); got.Achieved != 100 || got.Needed != 4 || got.Moves() {
		t.Errorf("a Release as found: %+v", got)
	}
}

// cluster is a model of one application cluster: its true state, and the states that the EndpointSlice controller and the
// reconciler have in their caches. Each gets the events of one kind in order, and of different kinds in any order.
type cluster struct {
	dice     *rand.Rand
	pods     []version[map[string]modelPod]
	main     []version[Selection]
	second   []version[*Selection]
	writer   cursor
	reader   cursor
	slices   map[string]bool // of the Service
	shadow   map[string]bool // of the shadow Service; shadowOf is the version of that Service
	shadowOf int
}

type version[T any] struct{ of T }

// cursor is the version of each kind that a cache has.
type cursor struct{ pods, main, second int }

type modelPod struct {
	release         string
	ready, labelled bool
}

func (c *cluster) change(change func(map[string]modelPod)) {
	now := maps.Clone(c.pods[len(c.pods)-1].of)
	change(now)
	c.pods = append(c.pods, version[map[string]modelPod]{now})
}

// hear delivers events of one kind to a cache.
func (c *cluster) hear(cache *cursor) {
	step := func(at *int, n int) {
		if *at < n-1 {
			*at += 1 + c.dice.IntN(n-1-*at)
		}
	}
	switch c.dice.IntN(3) {
	case 0:
		step(&cache.pods, len(c.pods))
	case 1:
		step(&cache.main, len(c.main))
	default:
		step(&cache.second, len(c.second))
	}
}

func selected(s Selection, of map[string]modelPod) map[string]bool {
	out := map[string]bool{}
	for name, pod := range of {
		if pod.ready && (s.ByLabel && pod.labelled || s.Release != "" && pod.release == s.Release) {
			out[name] = true
		}
	}
	return out
}

// write writes EndpointSlices from the cache of their controller.
func (c *cluster) write() {
	known := c.pods[c.writer.pods].of
	c.slices = selected(c.main[c.writer.main].of, known)
	if second := c.second[c.writer.second].of; second != nil {
		c.shadow, c.shadowOf = selected(*second, known), c.writer.second
	}
}

// view is the state that the reconciler reads from its cache.
func (c *cluster) view(weights map[string]uint32) Application {
	app := Application{SelectByRelease: true, Selects: c.main[c.reader.main].of, Serving: len(c.slices)}
	of := c.pods[c.reader.pods].of
	for _, release := range slices.Sorted(maps.Keys(weights)) {
		r := Release{Name: release, Weight: weights[release], Awaited: true}
		for _, name := range slices.Sorted(maps.Keys(of)) {
			if pod := of[name]; pod.release == release {
				r.Pods = append(r.Pods, Pod{Name: name, Ready: pod.ready, Labelled: pod.labelled, Serving: c.slices[name]})
			}
		}
		app.AppPods += len(r.Pods)
		app.Releases = append(app.Releases, r)
	}
	if second := c.second[c.reader.second].of; second != nil {
		app.Shadow = &ShadowService{Selects: *second}
		if c.shadowOf == c.reader.second { // EndpointSlices of a deleted Service do not count
			app.Shadow.Serving = c.shadow
		}
	}
	return app
}

// carryOut writes the result of Next, or stops halfway. A write of the Service fails if the cache is stale.
func (c *cluster) carryOut(app Application) {
	change := app.Next()
	enable, disable := change.Enable, change.Disable
	for _, r := range app.Releases {
		plan := app.For(r.Name)
		enable, disable = append(enable, plan.Enable...), append(disable, plan.Disable...)
	}
	for i, name := range append(slices.Clone(enable), disable...) {
		if c.dice.IntN(10) == 0 {
			return
		}
		c.change(func(pods map[string]modelPod) {
			if pod, ok := pods[name]; ok {
				pod.labelled = i < len(enable)
				pods[name] = pod
			}
		})
	}
	if change.Select != nil {
		if c.reader.main == len(c.main)-1 {
			c.main = append(c.main, version[Selection]{*change.Select})
		}
		return
	}
	second := c.second[c.reader.second].of
	switch {
	case c.reader.second != len(c.second)-1:
	case second != nil && (change.Shadow == nil || *change.Shadow != *second):
		c.second = append(c.second, version[*Selection]{nil})
	case second == nil && change.Shadow != nil:
		c.second = append(c.second, version[*Selection]{change.Shadow})
	}
}

// TestTheServiceIsNeverEmptyNorWrongWithStaleCaches walks through rollouts forward and backward, with Pods that are replaced,
// while the reconciler and the EndpointSlice controller get events late and in any order.
func TestTheServiceIsNeverEmptyNorWrongWithStaleCaches(t *testing.T) {
	steps := []map[string]uint32{
		{"old": 100, "new": 0, "older": 0}, {"old": 100, "new": 50, "older": 0}, {"old": 50, "new": 50, "older": 0},
		{"old": 50, "new": 100, "older": 0}, {"old": 0, "new": 100, "older": 0},
	}
	done := 0
	for seed := range uint64(150) {
		dice := rand.New(rand.NewPCG(seed, 7))
		begin := map[string]modelPod{}
		for i := range 4 {
			begin[fmt.Sprint("old-", i)] = modelPod{"old", true, true}
			begin[fmt.Sprint("new-", i)] = modelPod{"new", true, dice.IntN(2) == 0}
			begin[fmt.Sprint("older-", i)] = modelPod{"older", true, dice.IntN(2) == 0}
		}
		c := &cluster{
			dice: dice, pods: []version[map[string]modelPod]{{begin}}, main: []version[Selection]{{toOld}},
			second: []version[*Selection]{{nil}}, shadowOf: -1,
		}
		c.write()
		at, way, born := 0, 1, 0
		may := map[string]bool{"old": true}
		for range 1500 {
			switch dice.IntN(5) {
			case 0:
				c.hear(&c.writer)
			case 1:
				c.write()
			case 2:
				c.hear(&c.reader)
			case 3:
				c.carryOut(c.view(steps[at]))
			case 4:
				if dice.IntN(20) == 0 { // a Pod is replaced by one without a label, which is ready at once
					born++
					c.change(func(pods map[string]modelPod) {
						names := slices.Sorted(maps.Keys(pods))
						name := names[dice.IntN(len(names))]
						release := pods[name].release
						if n := len(selected(Selection{Release: release}, pods)); n < 4 {
							return
						}
						delete(pods, name)
						pods[fmt.Sprint(release, "-", 10+born)] = modelPod{release, true, false}
					})
				}
			}
			if len(c.slices) == 0 {
				t.Fatalf("seed %d: the Service is empty, %v", seed, c.main[c.writer.main])
			}
			for name := range c.slices {
				if release, _, _ := strings.Cut(name, "-"); !may[release] {
					t.Fatalf("seed %d: %s serves at step %d", seed, name, at)
				}
			}
			if dice.IntN(10) == 0 && settled(c, steps[at]) {
				for name, weight := range steps[at] { // a Release that lost its traffic must stay without
					may[name] = weight > 0
				}
				if way == 1 && at == len(steps)-1 || way == -1 && at == 0 || dice.IntN(8) == 0 {
					way = -way
				}
				at = max(0, min(len(steps)-1, at+way))
				if dice.IntN(8) == 0 { // all at once
					at = dice.IntN(len(steps))
				}
				for name, weight := range steps[at] {
					if weight > 0 && !may[name] {
						c.scaleUp(name)
					}
					may[name] = may[name] || weight > 0
				}
				done++
			}
		}
	}
	if done < 500 {
		t.Errorf("only %d steps were done", done)
	}
}

// scaleUp gives a Release new Pods, as if it had none for a while. They are ready before it has a weight, but only the status of
// its Deployment shows that: the reconciler's cache may have none of the Pods.
func (c *cluster) scaleUp(release string) {
	n := len(c.pods)
	c.change(func(pods map[string]modelPod) {
		maps.DeleteFunc(pods, func(_ string, pod modelPod) bool { return pod.release == release })
	})
	c.change(func(pods map[string]modelPod) {
		for i := range 4 {
			pods[fmt.Sprintf("%s-%d-%d", release, n, i)] = modelPod{release, true, false}
		}
	})
}

// settled reports whether all weights are met, as the reconciler sees it.
func settled(c *cluster, weights map[string]uint32) bool {
	app := c.view(weights)
	for _, r := range app.Releases {
		if !app.For(r.Name).Ready() {
			return false
		}
	}
	return true
}

func TestPodsKeepTheLabelWhileTheirSuccessorsAreNotSeen(t *testing.T) {
	app := Application{SelectByRelease: true, Selects: shared, Serving: 2, AppPods: 2, Releases: []Release{
		{Name: "old", Pods: pods("o", 2, with)}, {Name: "new", Weight: 1, Awaited: true},
	}}
	if got := app.For("old"); got.Moves() || got.Ready() {
		t.Errorf("got %+v", got)
	}
	app.Releases[1].Awaited = false
	if got := app.For("old").Disable; len(got) != 2 {
		t.Errorf("when no Pods will come, only %v lose it", got)
	}
}

// TestWhatWeighsNothingIsNotReadyWhileTheServiceSelectsIt has endpoints that are older than the selector of the Service.
func TestWhatWeighsNothingIsNotReadyWhileTheServiceSelectsIt(t *testing.T) {
	pods := func(name string, serving bool) []Pod {
		return []Pod{{Name: name, Ready: true, Labelled: true, Serving: serving}}
	}
	for sentence, tc := range map[string]struct {
		selects Selection
		ready   bool
	}{
		"the Service selects by label, and the Pods have it": {Selection{ByLabel: true}, false},
		"the Service selects another Release":                {Selection{Release: "new"}, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			a := Application{SelectByRelease: true, Selects: tc.selects, Releases: []Release{
				{Name: "old", Pods: pods("old-1", false)}, {Name: "new", Weight: 100, Pods: pods("new-1", true)},
			}}
			if plan := a.For("old"); plan.Ready() != tc.ready {
				t.Errorf("ready is %t, want %t: %+v", plan.Ready(), tc.ready, plan)
			}
		})
	}
}
