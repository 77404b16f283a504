// SPDX-License-Identifier: Apache-2.0

// Package preview computes the effect of each step of a strategy on a cluster: the number of Pods, and of Pods in traffic. It
// uses the same rules as the rollout.
package preview

import (
	"fmt"
	"math"
	"strings"
	"time"

	"shipper.dev/shipper/apis/rules/check"
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

// Step is the effect of one step of a strategy on a cluster.
type Step struct {
	Index int
	Name  string
	// Contender is the new Release, Incumbent the one it replaces; nil when it replaces none.
	Contender Side
	Incumbent *Side
	// Gates are the conditions of other controllers that the step waits for.
	Gates []string
	// Gated is true where the step is passed only when it is achieved. After is how long it lasts before the rollout goes on by itself;
	// empty where a user has to raise targetStep.
	Gated bool
	After shipper.Duration
	// Approvals is how many users have to approve the step before it is achieved.
	Approvals int32
	// Checks describes the checks of the step, as Check does.
	Checks []string
}

// Steps are the steps of a strategy, for a contender and an incumbent with Deployments of that many Pods at full capacity; incumbent is nil
// when there is none.
func Steps(s *shipper.RolloutStrategy, contender, incumbent []int32) []Step {
	if s == nil {
		return nil
	}
	out := make([]Step, len(s.Steps))
	for i, step := range s.Steps {
		out[i] = Step{Index: i, Name: step.Name, Contender: Side{
			Pods:    pods(contender, step.Capacity.Contender),
			Percent: step.Capacity.Contender, Weight: step.Traffic.Contender,
		}, Gates: step.ReadinessGates, Gated: s.Gated(int32(i)), After: step.After, Approvals: step.RequiredApprovals()}
		if incumbent != nil {
			out[i].Incumbent = &Side{
				Pods:    pods(incumbent, step.Capacity.Incumbent),
				Percent: step.Capacity.Incumbent, Weight: step.Traffic.Incumbent,
			}
		}
		out[i].serve()
	}
	return out
}

// pods is the number of Pods of Deployments at a percentage, which bears on each.
func pods(all []int32, percent int32) int32 {
	n := int64(0)
	for _, one := range all {
		n += int64(strategy.Pods(one, percent))
	}
	return int32(min(n, math.MaxInt32))
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

// String describes the step to a user.
func (s Step) String() string {
	out := fmt.Sprintf("step %d (%s): contender %s", s.Index, s.Name, s.Contender)
	if s.Incumbent != nil {
		out += fmt.Sprintf(", incumbent %s", *s.Incumbent)
	}
	return out
}

// Requests says, for a user, which share of the requests the contender serves, beside the one that its weight asks for; empty where a
// Release has no traffic.
func (s Step) Requests() string {
	share, both := s.Share()
	if !both {
		return ""
	}
	return fmt.Sprintf(": the contender serves %s of the requests, for a weight of %s", share.Got(), share.Wanted())
}

// Awaited says, for a user, what else the step waits for and how it ends; empty when it waits for targetStep alone.
func (s Step) Awaited() string {
	out := ""
	if len(s.Gates) > 0 {
		out += "; it waits for " + strings.Join(s.Gates, ", ")
	}
	if len(s.Checks) > 0 {
		out += "; it is checked by " + strings.Join(s.Checks, ", ")
	}
	if s.Gated {
		out += "; it is a gate"
	}
	if s.Approvals > 0 {
		out += fmt.Sprintf(" that asks for %d approvals", s.Approvals)
	}
	if s.After != "" {
		out += fmt.Sprintf("; it advances by itself after %s", s.After)
	}
	return out
}

// Check describes, for a user, the check of a step that goes on by itself after such a time. spec is nil where there is no such Check.
func Check(c shipper.StepCheck, spec *shipper.CheckSpec, after shipper.Duration) string {
	var how []string
	switch {
	case spec == nil:
		how = append(how, "there is no Check "+c.Check)
	case check.Once(spec):
		how = append(how, fmt.Sprintf("once in each cluster, within %s", duration(check.Timeout(spec))))
	default:
		n := check.Count(spec, after.Value())
		measurements := "measurements"
		if n == 1 {
			measurements = "measurement"
		}
		last := spec.InitialDelay.Value() + time.Duration(n-1)*check.Interval(spec)
		how = append(how, fmt.Sprintf("%d %s until %s after the step has its capacity and traffic", n, measurements, duration(last)))
		if spec.Over == shipper.OverFleet {
			how = append(how, "over all clusters")
		}
	}
	if c.DryRun {
		how = append(how, "it does not count")
	}
	return fmt.Sprintf("%s (%s)", c.NameInStep(), strings.Join(how, ", "))
}

// duration formats a duration without units that are 0.
func duration(d time.Duration) string {
	out := d.String()
	if strings.HasSuffix(out, "m0s") {
		out = strings.TrimSuffix(out, "0s")
	}
	if strings.HasSuffix(out, "h0m") {
		out = strings.TrimSuffix(out, "0m")
	}
	return out
}

// Failure says, for a user, when a rollout has failed and what is done then; empty where nothing fails. first is true of the first Release,
// with nothing before it to go back to.
func Failure(s *shipper.RolloutStrategy, first bool) string {
	if s == nil {
		return ""
	}
	var causes []string
	if s.ProgressDeadline != "" {
		causes = append(causes, fmt.Sprintf("a step lacks installation, capacity or traffic for %s", s.ProgressDeadline))
	}
	if check.Counts(s) {
		causes = append(causes, "a check fails")
	}
	if len(causes) == 0 {
		return ""
	}
	then := map[shipper.FailurePolicy]string{
		shipper.OnFailureRetreat: "it retreats to the last step before in which the contender has no traffic, or waits where there is none",
		shipper.OnFailureAbort:   "it is aborted",
	}[s.OnFailure]
	switch {
	case then == "":
		then = "it waits for a person"
	case first:
		then = "it waits for a person, because a first Release has nothing to go back to"
	}
	return fmt.Sprintf("the rollout fails if %s: %s", strings.Join(causes, " or if "), then)
}

// String describes a side to a user.
func (s Side) String() string {
	pods := "Pods"
	if s.Pods == 1 {
		pods = "Pod"
	}
	return fmt.Sprintf("%d %s, %d in traffic", s.Pods, pods, s.Serving)
}

// Shares describes the step in percentages, for use while the numbers of Pods are unknown.
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
