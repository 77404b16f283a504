// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"fmt"
	"slices"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// stage is one condition of a step.
type stage struct {
	// condition is its type in the Release's status.strategy.
	condition string
	// waiting selects the state that is True while the stage is not achieved.
	waiting func(*shipper.ReleaseStrategyState) *shipper.StrategyState
	// achieved reports whether the stage is as the step wants it; message says what the stage waits for otherwise.
	achieved bool
	message  string
	// reason of the condition while it is not achieved; empty means ClustersNotReady.
	reason string
	// needs is the condition that this stage depends on; empty when it depends on none.
	needs string
	// lacking are the clusters in which the stage is not achieved; nil for the step's gates.
	lacking func() []Lack
}

// stagesOf lists the stages of a step in the order in which they are achieved.
func stagesOf(contender, incumbent *participant, backward bool) []stage {
	install := installStage(contender)
	capacity, traffic := capacityStage(contender, incumbent), trafficStage(contender, incumbent)
	switch {
	case incumbent == nil && backward:
		return []stage{install, traffic, capacity}
	case incumbent == nil:
		return []stage{install, capacity, traffic}
	}
	theirCapacity, theirTraffic := capacityStage(incumbent, contender), trafficStage(incumbent, contender)
	if backward {
		return []stage{install, theirCapacity, theirTraffic, traffic, capacity}
	}
	return []stage{install, capacity, traffic, theirTraffic, theirCapacity}
}

func installStage(s *participant) stage {
	return stage{
		condition: shipper.StrategyContenderAchievedInstallation,
		waiting: func(state *shipper.ReleaseStrategyState) *shipper.StrategyState {
			return &state.WaitingForInstallation
		},
		achieved: installed(s.release),
		message: fmt.Sprintf("clusters pending installation: %s. for more details try `kubectl describe it %s`",
			installationPending(s.release), s.release.Release.Name),
		lacking: s.release.lackingInstallation,
	}
}

func capacityStage(s, other *participant) stage {
	return stage{
		condition: s.achievedCapacity,
		waiting: func(state *shipper.ReleaseStrategyState) *shipper.StrategyState {
			return &state.WaitingForCapacity
		},
		achieved: s.capacity.achieved(),
		message: fmt.Sprintf("release %q hasn't achieved capacity in clusters: %s. "+
			"for more details try `kubectl describe ct %s`",
			s.release.Release.Name, s.capacity.pending(), s.release.Release.Name),
		needs:   s.capacityNeeds(other),
		lacking: s.capacity.lacking,
	}
}

func trafficStage(s, other *participant) stage {
	return stage{
		condition: s.achievedTraffic,
		waiting: func(state *shipper.ReleaseStrategyState) *shipper.StrategyState {
			return &state.WaitingForTraffic
		},
		achieved: s.traffic.achieved(),
		message: fmt.Sprintf("release %q hasn't achieved traffic in clusters: %s. "+
			"for more details try `kubectl describe tt %s`",
			s.release.Release.Name, s.traffic.pending(), s.release.Release.Name),
		needs:   s.trafficNeeds(other),
		lacking: s.traffic.lacking,
	}
}

// awaited is the stage that the rollout waits for: the first that is not achieved, or the one that it needs. unmet is the index
// of the first; when the step is achieved, awaited is nil and unmet is the number of stages.
func (r *rollout) awaited() (awaited *stage, unmet int) {
	unmet = slices.IndexFunc(r.stages, func(s stage) bool { return !s.achieved })
	if unmet < 0 {
		return nil, len(r.stages)
	}
	awaited = &r.stages[unmet]
	for range r.stages {
		next := slices.IndexFunc(r.stages, func(s stage) bool { return s.condition == awaited.needs && !s.achieved })
		if next < 0 {
			break
		}
		awaited = &r.stages[next]
	}
	return awaited, unmet
}

// installationPending is quantity.pending for installations.
func installationPending(r Release) string {
	clusters, it := clustersOf(r), r.Installation
	fresh := slices.DeleteFunc(slices.Clone(clusters), func(c string) bool {
		return slices.Contains(it.Spec.Clusters, c)
	})
	if len(fresh) > 0 {
		return bracketed(fresh)
	}
	if !speaks(it) {
		return bracketed(clusters)
	}
	if c := shipper.FindCondition(it.Status.Conditions, shipper.TargetReady); c != nil && c.Message != "" {
		return c.Message
	}
	waiting := slices.DeleteFunc(slices.Clone(clusters), func(name string) bool {
		for _, c := range it.Status.Clusters {
			if c.Name == name {
				return shipper.ConditionTrue(c.Conditions, shipper.TargetReady)
			}
		}
		return false
	})
	if len(waiting) == 0 {
		waiting = clusters
	}
	return bracketed(waiting)
}
