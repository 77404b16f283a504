// SPDX-License-Identifier: Apache-2.0

package application

import (
	"fmt"

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
			a.Warn(shipper.Planned+"wave %d, %s: no cluster%s", i, s.Waves[i].Name,
				preview.BeforeTasks(s.Waves[i].BeforeTasks)+preview.TasksWithoutClusters(s.Waves[i].AfterTasks))
		case len(in) == 0:
			empty = append(empty, s.Waves[i].Name)
		case dryRun:
			text := ""
			if n := waves.Allowed(s, &s.Waves[i], len(in), len(chosen)); n > 0 {
				text = fmt.Sprintf(", %d may fail", n)
			}
			a.Warn(shipper.Planned+"wave %d, %s: %s, %d at a time%s%s", i, s.Waves[i].Name, abridged(in), waves.Bound(&s.Waves[i], len(in)),
				text, tasksOf(&s.Waves[i]))
		}
	}
	warnOfFailures(a, s, assigned, chosen)
	if len(empty) > 0 {
		a.Warn("no cluster is in wave %s: it changes nothing and makes no checks; its gates and its other tasks still hold", abridged(empty))
	}
}

// tasksOf says what a wave waits for before it begins, and at its end.
func tasksOf(wave *shipper.Wave) string {
	return preview.BeforeTasks(wave.BeforeTasks) + preview.Tasks(wave.AfterTasks)
}

// warnOfFailures warns of waves whose own maxFailures is that of all their clusters: a wave fails when all of them have.
func warnOfFailures(a *response.Response, s *shipper.RolloutStrategy, assigned waves.Assigned, chosen []string) {
	var all []string
	for i := range s.Waves {
		if waves.CoversAll(&s.Waves[i], len(assigned.In(int32(i), chosen))) {
			all = append(all, s.Waves[i].Name)
		}
	}
	if len(all) > 0 {
		a.Warn("maxFailures covers all clusters of wave %s: a rollout fails all the same when every cluster of a wave has failed, so at least "+
			"one must not", abridged(all))
	}
}
