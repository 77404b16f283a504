// SPDX-License-Identifier: Apache-2.0

// Package preview tells ahead what a strategy will do: with how many Pods, and how many of them in traffic, each step
// leaves a cluster. It counts by the rules that the rollout itself goes by.
package preview

import (
	"fmt"
	"strings"

	"shipper.dev/shipper/apis/rules/strategy"
	"shipper.dev/shipper/apis/rules/traffic"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Side is a Release in one cluster after a step.
type Side struct {
	// Pods there are, and how many of them take traffic.
	Pods, Serving int32
	// Percent of capacity and Weight of traffic, as the step says.
	Percent, Weight int32
}

// Step is what a step of a strategy makes of a cluster.
type Step struct {
	Index int
	Name  string
	// Contender is the new Release, Incumbent the one it replaces; nil when it replaces none.
	Contender Side
	Incumbent *Side
	// Gates are the conditions of other controllers that the step waits for.
	Gates []string
}

// Steps are those of a strategy, for a contender of that many Pods when all of it runs, and an incumbent of that many;
// incumbent is nil when there is none.
func Steps(s *shipper.RolloutStrategy, contender int32, incumbent *int32) []Step {
	if s == nil {
		return nil
	}
	out := make([]Step, len(s.Steps))
	for i, step := range s.Steps {
		out[i] = Step{Index: i, Name: step.Name, Contender: Side{
			Pods:    strategy.Pods(contender, step.Capacity.Contender),
			Percent: step.Capacity.Contender, Weight: step.Traffic.Contender,
		}, Gates: step.ReadinessGates}
		if incumbent != nil {
			out[i].Incumbent = &Side{
				Pods:    strategy.Pods(*incumbent, step.Capacity.Incumbent),
				Percent: step.Capacity.Incumbent, Weight: step.Traffic.Incumbent,
			}
		}
		out[i].serve()
	}
	return out
}

// serve counts Pods in traffic.
func (s *Step) serve() {
	all, total := s.Contender.Pods, uint64(max(0, s.Contender.Weight))
	if s.Incumbent != nil {
		all, total = all+s.Incumbent.Pods, total+uint64(max(0, s.Incumbent.Weight))
		s.Incumbent.serve(all, total)
	}
	s.Contender.serve(all, total)
}

func (s *Side) serve(all int32, total uint64) {
	s.Serving = int32(traffic.Needed(int(s.Pods), int(all), uint32(max(0, s.Weight)), total))
}

// String is the step as a user is told of it.
func (s Step) String() string {
	out := fmt.Sprintf("step %d (%s): contender %s", s.Index, s.Name, s.Contender)
	if s.Incumbent != nil {
		out += fmt.Sprintf(", incumbent %s", *s.Incumbent)
	}
	return out
}

// Awaited is what the step waits for besides Pods and traffic, as a user is told of it; empty when it is nothing.
func (s Step) Awaited() string {
	if len(s.Gates) == 0 {
		return ""
	}
	return "; it waits for " + strings.Join(s.Gates, ", ")
}

// String is a side as a user is told of it.
func (s Side) String() string {
	pods := "Pods"
	if s.Pods == 1 {
		pods = "Pod"
	}
	return fmt.Sprintf("%d %s, %d in traffic", s.Pods, pods, s.Serving)
}

// Shares is the step without counting Pods, for when their number is not known.
func (s Step) Shares() string {
	share := func(side Side) string {
		return fmt.Sprintf("%d %% of capacity, weight %d in traffic", side.Percent, side.Weight)
	}
	out := fmt.Sprintf("step %d (%s): contender %s", s.Index, s.Name, share(s.Contender))
	if s.Incumbent != nil {
		out += ", incumbent " + share(*s.Incumbent)
	}
	return out
}
