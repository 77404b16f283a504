// SPDX-License-Identifier: Apache-2.0

package inplace_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/apis/rules/inplace"
)

func TestGoalOf(t *testing.T) {
	set := func(replicas, partition int32) inplace.Set {
		return inplace.Set{Replicas: replicas, Partition: partition}
	}
	four := set(4, 0)
	tests := map[string]struct {
		incumbent *inplace.Set
		contender inplace.Set
		percent   int32
		want      inplace.Goal
	}{
		"no capacity keeps the incumbent's template":   {&four, four, 0, inplace.Goal{Set: four, Incumbents: 4}},
		"one percent replaces one Pod":                 {&four, four, 1, inplace.Goal{Set: set(4, 3), Contender: true, Incumbents: 3}},
		"half replaces half":                           {&four, four, 50, inplace.Goal{Set: set(4, 2), Contender: true, Incumbents: 2}},
		"51 percent of four are three":                 {&four, four, 51, inplace.Goal{Set: set(4, 1), Contender: true, Incumbents: 1}},
		"99 percent of four are all":                   {&four, four, 99, inplace.Goal{Set: set(4, 0), Contender: true}},
		"all":                                          {&four, four, 100, inplace.Goal{Set: four, Contender: true}},
		"more than all is all":                         {&four, four, 400, inplace.Goal{Set: four, Contender: true}},
		"less than none is none":                       {&four, four, -5, inplace.Goal{Set: four, Incumbents: 4}},
		"the first Release grows by its steps":         {nil, four, 50, inplace.Goal{Set: set(2, 0), Contender: true}},
		"the first Release has no Pods at first":       {nil, four, 0, inplace.Goal{Set: set(0, 0), Contender: true}},
		"the first Release is complete":                {nil, four, 100, inplace.Goal{Set: four, Contender: true}},
		"a contender of more Pods adds them":           {&four, set(6, 0), 50, inplace.Goal{Set: set(6, 3), Contender: true, Incumbents: 3}},
		"one of fewer Pods takes none away":            {&four, set(2, 0), 50, inplace.Goal{Set: set(4, 3), Contender: true, Incumbents: 3}},
		"one of fewer Pods takes them away at the end": {&four, set(2, 0), 100, inplace.Goal{Set: set(2, 0), Contender: true}},
		"one of none replaces none":                    {&four, set(0, 0), 50, inplace.Goal{Set: set(4, 4), Contender: true, Incumbents: 4}},
		"a chart's own partition holds at the end":     {&four, set(4, 1), 100, inplace.Goal{Set: set(4, 1), Contender: true}},
		"a chart's own partition bounds a step":        {&four, set(4, 3), 50, inplace.Goal{Set: set(4, 3), Contender: true, Incumbents: 2}},
		"one beyond all Pods replaces none":            {&four, set(4, 9), 100, inplace.Goal{Set: set(4, 9), Contender: true}},
		"back to none has the incumbent's partition": {
			&inplace.Set{Replicas: 4, Partition: 2}, four, 0, inplace.Goal{Set: set(4, 2), Incumbents: 4},
		},
		"one Pod changes at the first percent": {
			&inplace.Set{Replicas: 1}, set(1, 0), 1, inplace.Goal{Set: set(1, 0), Contender: true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := inplace.GoalOf(tc.incumbent, tc.contender, tc.percent)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestOnlyAFullStepChangesAWhole(t *testing.T) {
	for percent, want := range map[int32]bool{0: false, 1: false, 99: false, 100: true, 101: true} {
		if got := inplace.Whole(percent); got != want {
			t.Errorf("%d percent: %t", percent, got)
		}
	}
}

// pods are written as letters from index 0 on: i and c are ready Pods of incumbent and contender, I and C are not ready, x are leaving, and
// a dot is missing.
func pods(text string) (out []inplace.Pod) {
	for i, r := range text {
		if r != '.' {
			out = append(out, inplace.Pod{
				Index: int32(i), Contender: r == 'c' || r == 'C' || r == 'x', Ready: r == 'i' || r == 'c', Leaving: r == 'x',
			})
		}
	}
	return out
}

func TestEvict(t *testing.T) {
	four := inplace.Set{Replicas: 4}
	goal := func(percent int32) inplace.Goal { return inplace.GoalOf(&four, four, percent) }
	const none = -1
	tests := map[string]struct {
		goal inplace.Goal
		pods string
		want int32
	}{
		"a step that is reached":                                        {goal(50), "iicc", none},
		"on the way up the controller replaces Pods":                    {goal(50), "iiic", none},
		"on the way back the Pod that was replaced last is first":       {goal(25), "iccc", 1},
		"a Pod that comes back is awaited":                              {goal(25), "iIcc", none},
		"a Pod that leaves is awaited":                                  {goal(25), "ixcc", none},
		"a Pod that is missing is awaited":                              {goal(25), "i.cc", none},
		"a contender's Pod that is not ready goes at once":              {goal(25), "iCCC", 1},
		"one that is not ready goes before one that is":                 {goal(25), "icCc", 2},
		"one that is not ready goes though others are missing":          {goal(25), "iC..", 1},
		"one above the partition stays, ready or not":                   {goal(25), "iiiC", none},
		"nothing that serves goes while one above it is not ready":      {goal(50), "iccC", none},
		"back to none the controller replaces what is ready":            {goal(0), "iccc", none},
		"back to none one that is not ready is in the controller's way": {goal(0), "iccC", 3},
		"the first Release has nothing to go back to":                   {inplace.GoalOf(nil, four, 100), "cccC", none},
		"a chart's own partition evicts nothing": {
			inplace.GoalOf(&four, inplace.Set{Replicas: 4, Partition: 2}, 100), "cccc", none,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, found := tc.goal.Evict(pods(tc.pods))
			if !found {
				got = none
			}
			if got != tc.want {
				t.Errorf("evicts %d, want %d", got, tc.want)
			}
		})
	}
}

// achieved reports whether a StatefulSet is as a goal says: all Pods are there, ready, and of the right template. Pods below a partition of
// the contender's own chart may have either.
func achieved(g inplace.Goal, pods []inplace.Pod) bool {
	for _, p := range pods {
		late := g.Contender && !p.Contender && p.Index >= g.Partition
		early := p.Contender && p.Index < g.Incumbents
		if !p.Ready || late || early || p.Index >= g.Replicas {
			return false
		}
	}
	return len(pods) == int(g.Replicas)
}

// controller does what the StatefulSet controller does with ordered Pods, one change at a time: a missing Pod is made by the partition, one
// beyond the replicas goes, and the highest one of another template goes if all above it are ready.
func controller(g inplace.Goal, pods []inplace.Pod) []inplace.Pod {
	for i := range g.Replicas {
		if i == int32(len(pods)) || pods[i].Index != i {
			made := inplace.Pod{Index: i, Contender: g.Contender && i >= g.Partition}
			return slices.Insert(pods, int(i), made)
		}
		if !pods[i].Ready {
			pods[i].Ready = true
			return pods
		}
	}
	if int32(len(pods)) > g.Replicas {
		return pods[:len(pods)-1]
	}
	for i := g.Replicas - 1; i >= 0; i-- {
		if pods[i].Contender != g.Contender && (!g.Contender || i >= g.Partition) {
			return slices.Delete(pods, int(i), int(i)+1)
		}
	}
	return pods
}

// TestEveryWayFromStepToStepKeepsServing goes from each percentage to each other, up and down, with any numbers of replicas: the goal is
// achieved, at most one Pod that should serve is away at a time, and eviction stops.
func TestEveryWayFromStepToStepKeepsServing(t *testing.T) {
	percents := []int32{0, 1, 25, 50, 75, 99, 100}
	for replicas := range int32(6) {
		for _, wanted := range []int32{replicas, replicas + 2, max(replicas-2, 0)} {
			incumbent, contender := inplace.Set{Replicas: replicas}, inplace.Set{Replicas: wanted}
			for _, from := range percents {
				for _, to := range percents {
					t.Run(fmt.Sprintf("%d to %d replicas, %d to %d percent", replicas, wanted, from, to), func(t *testing.T) {
						now := pods("iiiiii"[:replicas])
						for _, percent := range []int32{from, to} {
							now = drive(t, inplace.GoalOf(&incumbent, contender, percent), now, min(replicas, wanted))
						}
					})
				}
			}
		}
	}
}

// drive runs controller and evictions until the goal is achieved; least Pods but one are always ready.
func drive(t *testing.T, g inplace.Goal, now []inplace.Pod, least int32) []inplace.Pod {
	t.Helper()
	for range 100 {
		ready := int32(0)
		for _, p := range now {
			if p.Ready {
				ready++
			}
		}
		if ready < least-1 {
			t.Fatalf("%d of %d Pods are ready: %+v", ready, least, now)
		}
		if achieved(g, now) {
			if index, found := g.Evict(now); found {
				t.Fatalf("evicts %d of %+v for %+v", index, now, g)
			}
			return now
		}
		if index, found := g.Evict(now); found {
			now = slices.DeleteFunc(now, func(p inplace.Pod) bool { return p.Index == index })
			continue
		}
		now = controller(g, now)
	}
	t.Fatalf("%+v is never achieved: %+v", g, now)
	return nil
}

func TestInvertedGoalsHaveTheSameShares(t *testing.T) {
	for percent, want := range map[int32]inplace.Goal{
		25: {Set: inplace.Set{Replicas: 4, Partition: 1}, Contender: true, Incumbents: 1},
		50: {Set: inplace.Set{Replicas: 4, Partition: 2}, Contender: true, Incumbents: 2},
		75: {Set: inplace.Set{Replicas: 4, Partition: 3}, Contender: true, Incumbents: 3},
	} {
		goal := inplace.GoalOf(&inplace.Set{Replicas: 4}, inplace.Set{Replicas: 4}, percent)
		if got := goal.Inverted(); got != want || got.Share() != goal.Incumbents {
			t.Errorf("%d %%: %v, want %v", percent, got, want)
		}
	}
}
