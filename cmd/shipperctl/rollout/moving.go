// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// moving reports whether the shares of traffic in a cluster are those of no step, because Pods are being moved. incumbent may be nil.
func moving(o *observed, newest, incumbent *shipper.Release, cluster string) bool {
	if incumbent == nil {
		return false
	}
	contender, before := o.traffic[newest.Name], o.traffic[incumbent.Name]
	if contender == nil || before == nil {
		return false
	}
	return onTheWay(contender, cluster) || onTheWay(before, cluster) ||
		betweenSteps(newest, weightIn(contender, cluster), weightIn(before, cluster))
}

// onTheWay reports whether a cluster is about to get the share that a target requests there.
func onTheWay(tt *shipper.TrafficTarget, cluster string) bool {
	i := slices.IndexFunc(tt.Status.Clusters, func(c shipper.ClusterTrafficStatus) bool { return c.Name == cluster })
	if i < 0 {
		return false
	}
	c := shipper.FindCondition(tt.Status.Clusters[i].Conditions, shipper.TargetReady)
	return tt.Status.ObservedGeneration < tt.Generation ||
		c != nil && (c.Reason == shipper.InProgress || c.Reason == shipper.PodsNotInEndpoints)
}

// betweenSteps reports whether two weights are those of no step: one target of the two has the weight of the next step.
func betweenSteps(rel *shipper.Release, contender, incumbent uint32) bool {
	s := rel.Spec.Environment.Strategy
	return s != nil && contender > 0 && incumbent > 0 && !slices.ContainsFunc(s.Steps, func(step shipper.RolloutStrategyStep) bool {
		return step.Traffic.Contender == int32(contender) && step.Traffic.Incumbent == int32(incumbent)
	})
}

// weightIn is the weight that a target requests in a cluster; 0 where it requests none.
func weightIn(tt *shipper.TrafficTarget, cluster string) uint32 {
	for _, c := range tt.Spec.Clusters {
		if c.Name == cluster {
			return c.Weight
		}
	}
	return 0
}
