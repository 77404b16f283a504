// SPDX-License-Identifier: Apache-2.0

package waves

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// State is what a cluster does. By what was observed of this Release in it: a status of something earlier makes no cluster Done.
type State string

// The states.
const (
	// Done clusters have all that the position asks of them, and are ready.
	Done State = "Done"
	// Moving clusters have begun to change and are not there, or are there and not ready.
	Moving State = "Moving"
	// Unready clusters were requested to be as an earlier position has them, and are not known to be ready.
	Unready State = "Unready"
	// Waiting clusters are ready as an earlier position has them, and nothing was requested since.
	Waiting State = "Waiting"
	// Blocked clusters are as Waiting ones, and RolloutBlocks keep them from changing. They take no slot, and nothing waits for them.
	Blocked State = "Blocked"
	// Failed clusters have missed progressDeadline within maxFailures. They take no slot, and nothing waits for them.
	Failed State = "Failed"
	// Recovered clusters have failed and are ready again. They begin as Waiting ones do, and nothing waits for them before.
	Recovered State = "Recovered"
)

// Cluster is a cluster that the position asks something of.
type Cluster struct {
	Name  string
	Wave  int32
	State State
	// Unbounded is true if the cluster may change at any time: no other Release runs there.
	Unbounded bool
}

// Bound is how many of so many clusters of a wave may be moving at the same time; at least 1.
func Bound(wave *shipper.Wave, clusters int) int {
	if wave.MaxConcurrency == nil {
		return 1
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(wave.MaxConcurrency, clusters, true)
	if err != nil {
		return 1
	}
	return max(n, 1)
}

// Begin are those of the Unready, Waiting and Recovered clusters that may begin to change: first the Unready ones, in the order of the
// argument. In each wave as many clusters are moving at most as its maxConcurrency says, and an Unready one counts. None begins in a wave
// while more clusters of the waves before it are not done than that.
func Begin(s *shipper.RolloutStrategy, clusters []Cluster) []string {
	var out []string
	behind := 0 // clusters of the waves before that are not done
	for i := range s.Waves {
		var wave []Cluster
		used := map[State]int{}
		for _, c := range clusters {
			if c.Wave != int32(i) {
				continue
			}
			if wave = append(wave, c); !c.Unbounded {
				used[c.State]++
			}
		}
		bound := Bound(&s.Waves[i], len(wave))
		free := map[State]int{Unready: bound - used[Moving], Waiting: bound - used[Moving] - used[Unready]}
		if behind > bound {
			free = map[State]int{}
		}
		var begun []string
		for _, state := range []State{Unready, Waiting} {
			for _, c := range wave {
				switch {
				case c.State != state && (c.State != Recovered || state != Waiting):
				case c.Unbounded:
					begun = append(begun, c.Name)
				case free[state] > 0:
					free[state]--
					begun = append(begun, c.Name)
				}
			}
		}
		out = append(out, begun...)
		behind += len(slices.DeleteFunc(wave, func(c Cluster) bool {
			return c.State == Done || c.State == Blocked || c.State == Failed || c.State == Recovered && !slices.Contains(begun, c.Name)
		}))
	}
	return out
}
