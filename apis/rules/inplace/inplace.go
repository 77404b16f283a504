// SPDX-License-Identifier: Apache-2.0

// Package inplace decides how far a step changes a workload that cannot run once per Release: a StatefulSet, a DaemonSet, or a
// Deployment that would conflict with itself. Contender and incumbent share one object; the functions say whose template it has,
// and how many Pods get it.
package inplace

import (
	"slices"

	"shipper.dev/shipper/apis/rules/strategy"
)

// Whole reports whether a DaemonSet or a Deployment in place gets the contender's template at a step with this capacity. Its own update
// strategy replaces all Pods then.
func Whole(percent int32) bool { return percent >= 100 }

// Set is what a chart says of a StatefulSet.
type Set struct {
	// Replicas is spec.replicas.
	Replicas int32
	// Partition is spec.updateStrategy.rollingUpdate.partition: Pods with a lower index keep the earlier template, also in the end.
	Partition int32
}

// Goal is what a StatefulSet has to be at a step.
type Goal struct {
	// Set are the fields to write.
	Set
	// Contender is true if the object has the contender's template.
	Contender bool
	// Incumbents is how many Pods, from index 0 on, have to be the incumbent's.
	Incumbents int32
}

// GoalOf is the Goal at a step with this capacity for the contender. incumbent is nil if there is none. While both run, no Pod of the
// incumbent goes for a lower spec.replicas of the contender.
func GoalOf(incumbent *Set, contender Set, percent int32) Goal {
	wanted := strategy.Pods(contender.Replicas, percent)
	switch {
	case percent >= 100:
		return Goal{Set: contender, Contender: true}
	case incumbent == nil:
		return Goal{Set: Set{Replicas: wanted, Partition: contender.Partition}, Contender: true}
	case percent <= 0:
		return Goal{Set: *incumbent, Incumbents: incumbent.Replicas}
	default:
		replicas := max(incumbent.Replicas, contender.Replicas)
		both := Set{Replicas: replicas, Partition: max(replicas-wanted, contender.Partition)}
		return Goal{Set: both, Contender: true, Incumbents: replicas - wanted}
	}
}

// Inverted has the same shares with the incumbent's template in the object, on the way back after all Pods were the contender's: the
// StatefulSet controller makes Pods below the partition of the template of which all were last. The contender keeps the lowest indices, and
// both change their roles in the goal.
func (g Goal) Inverted() Goal {
	kept := g.Replicas - g.Incumbents
	return Goal{Set: Set{Replicas: g.Replicas, Partition: kept}, Contender: true, Incumbents: kept}
}

// Share is the number of Pods that get the template of the object.
func (g Goal) Share() int32 { return g.Replicas - g.Partition }

// Pod is a Pod of a StatefulSet.
type Pod struct {
	// Index is its ordinal, less spec.ordinals.start.
	Index int32
	// Contender is true if it was made of the contender's template.
	Contender bool
	// Ready is true if the Pod is ready, and is not being deleted.
	Ready bool
	// Leaving is true while the Pod is being deleted.
	Leaving bool
}

// Evict is the index of the next Pod to evict on the way back to a smaller share of the contender: a higher partition alone changes no Pod
// that is there. A Pod that serves is evicted only while all others are ready. One that is not ready is evicted at once, because the
// StatefulSet controller may wait for it for ever (kubernetes#67250). It replaces the others itself where the template is the incumbent's.
func (g Goal) Evict(pods []Pod) (index int32, found bool) {
	if slices.ContainsFunc(pods, func(p Pod) bool { return p.Leaving }) {
		return 0, false
	}
	ready, serving, broken := int32(0), int32(-1), int32(-1)
	for _, p := range pods {
		if p.Ready && p.Index < g.Replicas {
			ready++
		}
		switch stale := p.Contender && p.Index < g.Incumbents; {
		case stale && !p.Ready && (broken < 0 || p.Index < broken):
			broken = p.Index
		case stale && p.Ready && (serving < 0 || p.Index < serving):
			serving = p.Index
		}
	}
	switch {
	case broken >= 0:
		return broken, true
	case serving >= 0 && g.Contender && ready == g.Replicas:
		return serving, true
	default:
		return 0, false
	}
}
