// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// StepState is how far the contender's step is.
type StepState struct {
	// Converged reports whether contender and incumbent have the installation, the capacity and the traffic that the step wants.
	Converged bool
	// Achieved reports whether the conditions of other programs that the step waits for are True, too.
	Achieved bool
	// Approvals are those of the step; nil when its gate asks for none. Approving is true while they alone are awaited.
	Approvals *shipper.ReleaseApprovals
	Approving bool
	// Checks is how far the checks of the step are; nil when it has none, or before they begin.
	Checks *check.State
	// Incumbent reports whether there is a Release to go back to.
	Incumbent bool
	// Awaited is what is awaited, for users; empty when the step is achieved.
	Awaited string
	// Lacking are the clusters that are awaited, sorted; none when the step has converged, or has not begun.
	Lacking []Lack
	// Available is the number of the contender's available Pods in all clusters.
	Available int32
	// Begun reports whether the step is known, and the contender has the targets for it.
	Begun bool
	// Waves are the figures of each wave; none where the strategy has no waves.
	Waves []shipper.ReleaseWave
	// Incomplete are the clusters in which the contender or the incumbent lacks what the step wants, sorted; none before it has begun.
	Incomplete []string
	// DoneWaveUnhealthy is true while clusters of waves before the position's alone are awaited: no cluster of its wave begins before them.
	DoneWaveUnhealthy bool
	// Waiting is true while the time of a wave's wait alone, or approvals beside it, are awaited.
	Waiting bool
	// Late are the clusters that fail if progressDeadline ends now, sorted; OverBudget says which maxFailures they exceed then, and is empty
	// if they exceed none. Only where the strategy has a maxFailures.
	Late       []string
	OverBudget string
	// Failed are the clusters that have failed within maxFailures, sorted.
	Failed []string
	// Lagging names the clusters that have failed within maxFailures and lack what is asked of them, for users; empty if there are none.
	Lagging string
	// Recovering are the clusters that had failed and were ready again.
	Recovering []Recovery
	// BeforeApprovals are those that the wave's beforeTasks ask for; nil if they ask for none. Beginning is true while beforeTasks keep
	// clusters of the wave from beginning, and Entered once they have passed.
	BeforeApprovals    *shipper.ReleaseApprovals
	Beginning, Entered bool
}

// ConvergedBut reports whether everything that the step wants is there, in all clusters but these.
func (s StepState) ConvergedBut(clusters []string) bool {
	return s.Begun && !slices.ContainsFunc(s.Incomplete, func(c string) bool { return !slices.Contains(clusters, c) })
}

// Lack is a cluster that is awaited.
type Lack struct {
	Cluster string
	// Reachable is false while what is known of the cluster is not recent.
	Reachable bool
	// Message is the cluster's own; may be empty. Reason is that of Ready, where that is False.
	Message, Reason string
	// Blocked is true if RolloutBlocks hold the cluster alone.
	Blocked bool
	// Recovering is true if the cluster had failed within maxFailures: it has a deadline of its own.
	Recovering bool
}

func (r *rollout) stepState() StepState {
	s := StepState{Converged: r.converged, Incumbent: r.incumbent() >= 0, Available: r.availablePods(), Checks: r.Checks}
	if r.stages == nil {
		s.Awaited = r.executed(r.contender().Release).Message
		return s
	}
	if r.step.RequiredApprovals() > 0 {
		approvals, _ := ApprovalsOf(r.contender().Release, r.step, r.Approvals)
		s.Approvals = &approvals
	}
	s.BeforeApprovals, s.Beginning, s.Entered = r.before.approvals, r.before.isOpen(), r.before.tasks != nil && !r.before.isOpen()
	s.Begun, s.Incomplete = true, r.incomplete()
	awaited, _ := r.awaited()
	if s.Achieved = awaited == nil; s.Achieved {
		return s
	}
	s.Awaited, s.Approving, s.Waiting = awaited.message, awaited.reason == shipper.ApprovalsNeeded, awaited.reason == shipper.WaitNotOver
	if awaited.lacking != nil {
		s.Lacking = awaited.lacking()
	}
	return s
}

// incomplete are the clusters that lack something of any stage but the gates.
func (r *rollout) incomplete() []string {
	var out []string
	for _, stage := range r.stages {
		if stage.achieved || stage.lacking == nil {
			continue
		}
		lacking := stage.lacking()
		for _, l := range lacking {
			out = append(out, l.Cluster)
		}
		if len(lacking) == 0 { // a request changes, and the stage does not name the clusters
			for _, s := range r.participants {
				out = append(out, s.capacity.clusters...)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// availablePods of the contender in all clusters.
func (r *rollout) availablePods() int32 {
	var sum int32
	for _, n := range available(r.contender()) {
		sum += n
	}
	return sum
}

// lacking are the clusters that do not have the wanted value.
func (g *quantity) lacking() []Lack {
	var out []Lack
	for _, c := range g.where(func(c string) bool { return g.asked[c] != g.wanted || !g.readyIn(c) }) {
		out = append(out, lackOf(c, g.status[c]))
	}
	return out
}

// lackingInstallation are the clusters in which the chart is not installed.
func (r Release) lackingInstallation() []Lack {
	var out []Lack
	for _, cluster := range clustersOf(r) {
		if installedIn(r, cluster) {
			continue
		}
		var conditions []shipper.Condition
		if it := r.Installation; it != nil {
			i := slices.IndexFunc(it.Status.Clusters, func(c shipper.ClusterInstallationStatus) bool { return c.Name == cluster })
			if i >= 0 {
				conditions = it.Status.Clusters[i].Conditions
			}
		}
		out = append(out, lackOf(cluster, conditions))
	}
	return out
}

// lackOf is a cluster by its conditions. Of one that says nothing yet it is not known whether it can be reached.
func lackOf(cluster string, conditions []shipper.Condition) Lack {
	l := Lack{Cluster: cluster, Reachable: shipper.ConditionTrue(conditions, shipper.TargetOperational)}
	if c := shipper.FindCondition(conditions, shipper.TargetReady); c != nil && c.Status != "True" {
		l.Message = c.Message
		if c.Status == corev1.ConditionFalse {
			l.Reason = c.Reason
		}
	}
	return l
}

// ByItself reports whether a strategy asks for anything that is done, or prevented, by itself.
func ByItself(s *shipper.RolloutStrategy) bool {
	if s == nil {
		return false
	}
	for _, step := range s.Steps {
		if step.After != "" || step.Gate != nil {
			return true
		}
	}
	return len(s.Waves) > 0 || s.ProgressDeadline != "" || s.OnFailure != "" || s.HasChecks()
}
