// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// maxReplicas bounds the search for a number of replicas that is enough.
const maxReplicas = 10_000

// Share is the part of the requests of a cluster that the contender serves after a step in which both Releases have traffic. Each Pod in
// traffic serves as many requests as another one, so that a share is a number of whole Pods.
type Share struct {
	// Step is the index of the step, Name its name.
	Step int
	Name string
	// Weight is the contender's, Total that of both Releases.
	Weight, Total int64
	// Serving is the number of the contender's Pods in traffic, All that of both Releases.
	Serving, All int64
}

// Share returns the contender's share. It returns false for a step in which a Release has no weight, or no Pods are in traffic.
func (s Step) Share() (Share, bool) {
	if s.Incumbent == nil || s.Contender.Weight <= 0 || s.Incumbent.Weight <= 0 {
		return Share{}, false
	}
	out := Share{
		Step: s.Index, Name: s.Name,
		Weight: int64(s.Contender.Weight), Total: int64(s.Contender.Weight) + int64(s.Incumbent.Weight),
		Serving: int64(s.Contender.Serving), All: int64(s.Contender.Serving) + int64(s.Incumbent.Serving),
	}
	return out, out.All > 0
}

// Above reports whether the contender serves more than 1.5 times the requests that its weight asks for.
func (s Share) Above() bool { return 2*s.Serving*s.Total > 3*s.Weight*s.All }

// Below reports whether the contender serves less than two thirds of the requests that its weight asks for.
func (s Share) Below() bool { return 3*s.Serving*s.Total < 2*s.Weight*s.All }

// Got is the share that the Pods give, such as 50 %.
func (s Share) Got() string { return percent(s.Serving, s.All) }

// Wanted is the share that the weights ask for, such as 5 %.
func (s Share) Wanted() string { return percent(s.Weight, s.Total) }

// excess compares how far two shares are above their weights.
func (s Share) excess(other Share) int {
	times := func(of Share) float64 {
		return float64(of.Serving) / float64(of.All) * float64(of.Total) / float64(of.Weight)
	}
	return cmp.Compare(times(s), times(other))
}

// Worst returns the share that is farthest above its weight; false if none is more than 1.5 times as much.
func Worst(shares []Share) (Share, bool) {
	above := slices.DeleteFunc(slices.Clone(shares), func(s Share) bool { return !s.Above() })
	if len(above) == 0 {
		return Share{}, false
	}
	return slices.MaxFunc(above, Share.excess), true // the first one of equals
}

// Shares are those of the steps of a strategy, where both Releases have Deployments of that many Pods at full capacity.
func Shares(s *shipper.RolloutStrategy, replicas []int32) []Share {
	var out []Share
	for _, step := range Steps(s, replicas, replicas) {
		if share, both := step.Share(); both {
			out = append(out, share)
		}
	}
	return out
}

// Enough is the least number of replicas from which on no number gives the contender more than 1.5 times what the step asks for; 0 if there
// is none up to 10,000.
func Enough(step shipper.RolloutStrategyStep) int32 {
	enough := int32(0)
	for n := int32(maxReplicas); n > 0; n-- {
		contender := Side{Pods: strategy.Pods(n, step.Capacity.Contender), Weight: step.Traffic.Contender}
		incumbent := Side{Pods: strategy.Pods(n, step.Capacity.Incumbent), Weight: step.Traffic.Incumbent}
		of := Step{Contender: contender, Incumbent: &incumbent}
		of.serve()
		if share, both := of.Share(); both && share.Above() {
			break
		}
		enough = n
	}
	return enough
}

// Remedy says, for a user, how to bring the share of a step down to its weight. path is that of the step's field capacity.incumbent.
func Remedy(step shipper.RolloutStrategyStep, path string) string {
	if n := Enough(step); n > 0 {
		return fmt.Sprintf("have at least %d replicas, or leave the contender without traffic there", n)
	}
	return fmt.Sprintf("raise %s, or leave the contender without traffic there", path)
}

// percent is a part of a whole in percent: rounded to a whole number from 10 on, to one decimal below.
func percent(part, whole int64) string {
	value := 100 * float64(part) / float64(whole)
	digits := 0
	if value < 10 {
		digits = 1
	}
	return strings.TrimSuffix(strconv.FormatFloat(value, 'f', digits, 64), ".0") + " %"
}
