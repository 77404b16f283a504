// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"math"

	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/member/traffic"
)

// Desired is the number of Pods asked for: ceil(totalReplicaCount × percent / 100).
func Desired(want shipper.ClusterCapacityTarget) int32 {
	return strategy.Pods(want.TotalReplicaCount, want.Percent)
}

// Achieved is available Pods as a percentage of totalReplicaCount, rounded up. Of nothing, everything is achieved.
func Achieved(available, total int32) int32 {
	if total <= 0 {
		return 100
	}
	return ceil(int64(available)*100, int64(total))
}

func ceil(dividend, divisor int64) int32 {
	if dividend <= 0 {
		return 0
	}
	return int32(min((dividend+divisor-1)/divisor, math.MaxInt32))
}

// scale is the number of replicas to write, if the Deployment has another. A Deployment without a number has one.
func (s observation) scale() (replicas int32, needed bool) {
	if s.err != nil || len(s.deployments) != 1 {
		return 0, false
	}
	desired := s.desired()
	return desired, s.replicas() != desired
}

// lacks reports whether Pods that are asked for are missing or not ready.
func (s observation) lacks() bool {
	if s.want.AsFound {
		return false
	}
	ready := int32(0)
	for i := range s.pods {
		if fleet.PodReady(&s.pods[i]) {
			ready++
		}
	}
	return ready < Desired(s.want)
}

// keepsServing reports whether the Deployment has more Pods that serve than it is to have, and nothing serves in their place yet.
func (s observation) keepsServing(release string, serving traffic.Serving) bool {
	names := make([]string, len(s.pods))
	for i := range s.pods {
		names[i] = s.pods[i].Name
	}
	return serving.Unknown() || serving.Pods(names) > s.desired() && !serving.MayRemove(release)
}

// desired is the number of Pods there is to be: the Deployment's own number while the target leaves it as found. There
// must be one.
func (s observation) desired() int32 {
	if s.want.AsFound {
		return s.replicas()
	}
	return Desired(s.want)
}

// replicas is what the Deployment asks for now.
func (s observation) replicas() int32 {
	if r := s.deployments[0].Spec.Replicas; r != nil {
		return *r
	}
	return 1
}
