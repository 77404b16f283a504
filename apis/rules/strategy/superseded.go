// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"fmt"
	"slices"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// cover finds the superseded Releases that may go, all together: when the contender has completed, or when the step is achieved
// and, in every cluster, the contender and the incumbent have as many more Pods. None goes while one has lost its targets; one
// restored without its status waits for the contender to complete: it may have been the incumbent.
func (r *rollout) cover(contender, incumbent *participant, serving bool) {
	var names, lost, obscure []string
	need, left := map[string]int32{}, map[string]int32{}
	for i, role := range r.roles {
		if role != Superseded {
			continue
		}
		names = append(names, r.Releases[i].Release.Name)
		if r.Releases[i].Lost() {
			lost = append(lost, r.Releases[i].Release.Name)
		}
		if restored(r.Releases[i].Release) {
			obscure = append(obscure, r.Releases[i].Release.Name)
		}
		for cluster, n := range available(r.Releases[i]) {
			need[cluster] += n
		}
		if incumbent != nil {
			for cluster, total := range incumbent.capacity.total {
				left[cluster] = max(left[cluster], Pods(total, int32(leaves(r.Releases[i].Release))))
			}
		}
	}
	if len(names) == 0 {
		return
	}
	completed := serving && last(contender.release.Release)
	lacking := r.lacking(need, left, contender, incumbent)
	switch {
	case len(lost) > 0:
		r.note(names, fmt.Sprintf("kept as it is until these Releases have targets again: %s", bracketed(lost)))
	case completed, serving && len(lacking) == 0 && len(obscure) == 0:
		for i, role := range r.roles {
			if role == Superseded {
				r.uncovered[r.Releases[i].Release.Name] = r.retireSuperseded(r.Releases[i])
				if r.Releases[i].Held == "" {
					r.covered = append(r.covered, r.Releases[i].Release.Name)
				}
			}
		}
	case serving && len(lacking) == 0:
		r.note(names, fmt.Sprintf("kept as it is until Release %q has completed: the status was lost of %s",
			contender.release.Release.Name, bracketed(obscure)))
	case !serving:
		r.note(names, fmt.Sprintf("kept as it is until Release %q is at its step", contender.release.Release.Name))
	default:
		r.note(names, fmt.Sprintf("kept as it is until others have as many Pods in clusters: %s", bracketed(lacking)))
	}
}

// restored reports whether a superseded Release has lost its status: it may have completed before.
func restored(rel *shipper.Release) bool {
	return len(stamp.Clusters(rel)) > 0 && shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseComplete) == nil
}

// retireSuperseded is the message of a superseded Release that is replaced.
func (r *rollout) retireSuperseded(release Release) string {
	held := release.Held
	if held == "" {
		held = r.Blocked
	}
	if held != "" {
		return "its place is taken, and it is not deleted: " + held
	}
	return "its place is taken, it is about to be deleted"
}

func (r *rollout) note(names []string, message string) {
	for _, name := range names {
		r.uncovered[name] = message
	}
}

// lacking are the clusters in which the contender and the incumbent have fewer Pods than are needed.
func (r *rollout) lacking(need, left map[string]int32, contender, incumbent *participant) []string {
	var out []string
	for cluster, n := range need {
		have := contender.capacity.available[cluster]
		if incumbent != nil {
			have += max(0, incumbent.capacity.available[cluster]-left[cluster])
		}
		if have < n {
			out = append(out, cluster)
		}
	}
	slices.Sort(out)
	return out
}

// available Pods of a Release per cluster.
func available(r Release) map[string]int32 {
	out := map[string]int32{}
	if r.Capacity != nil {
		for _, c := range r.Capacity.Status.Clusters {
			out[c.Name] = c.AvailableReplicas
		}
	}
	return out
}

// leaves is the percentage that a Release's own step leaves the incumbent; between two steps, the smaller one.
func leaves(rel *shipper.Release) int64 {
	percent := int32(100)
	for _, i := range []int32{position.Achieved(rel).Step, rel.Spec.TargetStep} {
		if step := stepAt(rel, i); step != nil {
			percent = min(percent, step.Capacity.Incumbent)
		}
	}
	return int64(percent)
}

// last reports whether a Release is to be at its last step, of its last wave. A Release with resources has only one step.
func last(rel *shipper.Release) bool {
	return (placesResources(rel) || int(rel.Spec.TargetStep) == len(steps(rel))-1) &&
		position.Of(rel).Wave == rel.Spec.Environment.Strategy.LastWave()
}
