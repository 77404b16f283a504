// SPDX-License-Identifier: Apache-2.0

package application

import (
	"shipper.dev/shipper/apis/rules/preview"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/response"
)

// previewWaves warns of clusters that no wave selects, and of waves that select none. For a dry run it describes the waves, too.
func previewWaves(a *response.Response, s *shipper.RolloutStrategy, chosen []string, clusters []shipper.Cluster, dryRun bool) {
	if s == nil || len(s.Waves) == 0 || len(chosen) == 0 {
		return
	}
	assigned := waves.Assign(s, chosen, nil, clusters)
	if outside := assigned.Without(s, chosen); len(outside) > 0 {
		a.Warn("%sno wave selects %s: a rollout does not complete without them. Label them for a wave, or add a wave without clusterSelector",
			shipper.MightNotRollOut, abridged(outside))
	}
	var empty []string
	for i := range s.Waves {
		in := assigned.In(int32(i), chosen)
		switch {
		case len(in) == 0 && dryRun:
			a.Warn(shipper.Planned+"wave %d, %s: no cluster%s", i, s.Waves[i].Name, preview.Tasks(s.Waves[i].AfterTasks))
		case len(in) == 0:
			empty = append(empty, s.Waves[i].Name)
		case dryRun:
			a.Warn(shipper.Planned+"wave %d, %s: %s, %d at a time%s", i, s.Waves[i].Name, abridged(in), waves.Bound(&s.Waves[i], len(in)),
				preview.Tasks(s.Waves[i].AfterTasks))
		}
	}
	if len(empty) > 0 {
		a.Warn("no cluster is in wave %s: the rollout passes it without a change and without checks", abridged(empty))
	}
}
