// SPDX-License-Identifier: Apache-2.0

package templatecheck

import (
	"fmt"
	"slices"

	"shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Warnings lists what is valid in env but probably not intended.
func Warnings(env *shipper.ReleaseEnvironment) []string {
	if env.Strategy == nil {
		return nil // validation refuses that
	}
	out := WarningsOfStrategy(env.Strategy)
	warn := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	placed := env.ClusterRequirements.Placement != nil
	if !placed && Wanted(env.ClusterRequirements) == 0 {
		warn("clusterRequirements ask for no cluster in any region: nothing will run")
	}
	if placed { // which regions it gets depends on the clusters
		return out
	}
	for _, values := range env.ValuesPerRegion {
		if !slices.ContainsFunc(env.ClusterRequirements.Regions, func(r shipper.RegionRequirement) bool { return r.Name == values.Name }) {
			warn("valuesPerRegion has values for region %s, which clusterRequirements do not name", values.Name)
		}
	}
	return out
}

// WarningsOfStrategy lists what is valid in a strategy but probably not intended.
func WarningsOfStrategy(strategy *shipper.RolloutStrategy) []string {
	var out []string
	warn := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	steps := strategy.Steps
	for i, s := range steps {
		switch {
		case s.Traffic.Contender > 0 && s.Capacity.Contender == 0:
			warn("step %d (%s) gives traffic to the contender and no capacity", i, s.Name)
		case s.Traffic.Incumbent > 0 && s.Capacity.Incumbent == 0:
			warn("step %d (%s) leaves traffic to the incumbent and no capacity", i, s.Name)
		case s.Traffic.Incumbent == 0 && s.Traffic.Contender == 0:
			warn("step %d (%s) gives no Release any traffic", i, s.Name)
		}
		if s.AllowsServiceAccounts() && s.Gate.Approvals == 0 {
			warn("step %d (%s): gate.allowServiceAccounts has no effect without gate.approvals", i, s.Name)
		}
	}
	if len(steps) > 0 {
		out = append(out, warningsOfEnd(strategy)...)
	}
	if strategy.OnFailure != "" && strategy.ProgressDeadline == "" && !check.Counts(strategy) {
		warn("onFailure is %s and has no effect: nothing fails without progressDeadline", strategy.OnFailure)
	}
	return out
}

// warningsOfEnd is Warnings of the last step.
func warningsOfEnd(s *shipper.RolloutStrategy) (out []string) {
	at := len(s.Steps) - 1
	last := s.Steps[at]
	if last.Capacity.Contender != MaxPercent || last.Capacity.Incumbent != 0 {
		out = append(out, fmt.Sprintf("the last step (%s) completes the release with %d %% of capacity and leaves %d %% to its predecessor; "+
			"100 and 0 are usual",
			last.Name, last.Capacity.Contender, last.Capacity.Incumbent))
	}
	if last.Capacity.Incumbent == 0 && len(s.ChecksAt(int32(at))) > 0 {
		out = append(out, fmt.Sprintf(
			"step %d (%s): its checks run when the incumbent is gone; put them in a step that leaves it its capacity", at, last.Name))
	}
	return out
}

// Wanted is the number of requested clusters. PickAll, which has as many as fit, requests 1.
func Wanted(r shipper.ClusterRequirements) int64 {
	var n int64
	if p := r.Placement; p != nil {
		switch {
		case p.Type == shipper.PickFixed:
			return int64(len(p.Clusters))
		case p.Count != nil:
			return int64(*p.Count)
		}
		return 1
	}
	for _, region := range r.Regions {
		if region.Replicas == nil {
			n++
			continue
		}
		n += int64(*region.Replicas)
	}
	return n
}
