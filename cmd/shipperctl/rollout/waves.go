// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"

	"shipper.dev/shipper/apis/rules/position"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// waveState is one of the strategy's waves.
type waveState struct {
	Name string `json:"name"`
	// Target is true of the wave that is asked for.
	Target bool `json:"target,omitempty"`
	// Clusters is how many there are in the wave, Achieved how many of them have what the Release wants there, and Moving how many change.
	Clusters int32 `json:"clusters"`
	Achieved int32 `json:"achieved"`
	Moving   int32 `json:"moving"`
	// MovingClusters names those that change, BlockedClusters those that RolloutBlocks hold; at most 10.
	MovingClusters  []string `json:"movingClusters,omitempty"`
	Blocked         int32    `json:"blocked,omitempty"`
	BlockedClusters []string `json:"blockedClusters,omitempty"`
	// Failed is how many have failed within maxFailures and still lack something; FailedClusters names them, the worst first, at most 10.
	Failed         int32    `json:"failed,omitempty"`
	FailedClusters []string `json:"failedClusters,omitempty"`
}

// wavesOf are the waves of a Release; none where its strategy has none.
func wavesOf(rel *shipper.Release) []waveState {
	var out []waveState
	for i, w := range rel.Status.Waves {
		out = append(out, waveState{
			Name: w.Name, Target: i == int(position.Of(rel).Wave), Clusters: w.Clusters, Achieved: w.Achieved, Moving: w.Moving,
			MovingClusters: w.MovingClusters, Blocked: w.Blocked, BlockedClusters: w.BlockedClusters,
			Failed: w.Failed, FailedClusters: w.FailedClusters,
		})
	}
	return out
}

// describe is a wave in one line: canary 1/1, or production 3/9, 1 failed (us-2), 2 moving (eu-1, us-1), 1 blocked (ap-1).
func (w waveState) describe() string {
	out := fmt.Sprintf("%s %d/%d", w.Name, w.Achieved, w.Clusters)
	counted := func(n int32, what string, clusters []string) {
		if n == 0 {
			return
		}
		names := strings.Join(clusters, ", ")
		if more := int(n) - len(clusters); more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		out += fmt.Sprintf(", %d %s (%s)", n, what, names)
	}
	counted(w.Failed, "failed", w.FailedClusters)
	counted(w.Moving, "moving", w.MovingClusters)
	counted(w.Blocked, "blocked", w.BlockedClusters)
	return out
}
