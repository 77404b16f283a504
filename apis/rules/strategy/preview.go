// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"slices"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// planPreviews is what each Release's TrafficTarget says about the preview Service, by index and cluster. In a cluster that has one, at
// most one Release is to be selected: the contender from when it has its step's Pods there until it is complete; until then the Release
// that is selected now, so that there are Pods at any time; otherwise the Release that serves, or none.
func (r *rollout) planPreviews() map[int]map[string]shipper.PreviewSelection {
	newest := len(r.Releases) - 1
	out := map[int]map[string]shipper.PreviewSelection{}
	say := func(i int, cluster string, what shipper.PreviewSelection) {
		if out[i] == nil {
			out[i] = map[string]shipper.PreviewSelection{}
		}
		out[i][cluster] = what
	}
	for _, cluster := range r.previewClusters {
		i, idle := r.previewIn(cluster)
		switch {
		case idle && r.idlesWithout():
			say(newest, cluster, shipper.PreviewNone)
		case i >= 0:
			say(i, cluster, shipper.PreviewRelease)
		}
	}
	return out
}

// previewIn is the index of the Release that the preview Service of a cluster is to select, -1 when it is none, and whether no rollout is
// under way there.
func (r *rollout) previewIn(cluster string) (i int, idle bool) {
	newest := len(r.Releases) - 1
	contender := r.contender()
	if Complete(contender.Release) && last(contender.Release) {
		return newest, true
	}
	if s := r.participants[newest]; s != nil && s.capacity.enoughIn(cluster) && s.capacity.available[cluster] > 0 {
		return newest, false
	}
	now := slices.IndexFunc(r.Releases, func(release Release) bool {
		return previewOf(release, cluster) == shipper.PreviewRelease && slices.Contains(clustersOf(release), cluster)
	})
	if now >= 0 {
		return now, false
	}
	return r.incumbent(), true
}

// previewed are the clusters that have a preview Service, by what TrafficTargets say.
func (r *rollout) previewed() []string {
	var out []string
	for _, release := range r.Releases {
		if release.Traffic == nil {
			continue
		}
		for _, c := range release.Traffic.Status.Clusters {
			if c.Preview != "" && !slices.Contains(out, c.Name) {
				out = append(out, c.Name)
			}
		}
	}
	return out
}

// idlesWithout reports whether the preview Service selects no Pods while no rollout is under way.
func (r *rollout) idlesWithout() bool {
	s := r.contender().Release.Spec.Environment.Strategy
	return s != nil && s.PreviewWhenIdle == shipper.PreviewWhenIdleNone
}

// previewOf is what a Release's TrafficTarget says about the preview Service of a cluster.
func previewOf(release Release, cluster string) shipper.PreviewSelection {
	if release.Traffic != nil {
		for _, c := range release.Traffic.Spec.Clusters {
			if c.Name == cluster {
				return c.Preview
			}
		}
	}
	return ""
}

// mark decides what the TrafficTarget of the i-th Release says besides weights.
func (r *rollout) mark(i int, s *participant) {
	if r.participants == nil || !s.traffic.exists {
		return
	}
	for _, cluster := range s.traffic.clusters {
		is := s.traffic.marks[cluster]
		is.sole = r.sole(i, s, cluster, is.sole)
		if slices.Contains(r.previewClusters, cluster) {
			is.preview = r.previews[i][cluster]
		}
		s.traffic.remark(cluster, is)
	}
}

// sole reports whether the i-th Release is to have all traffic of a cluster at once: from when it has its Pods in every cluster. While no
// other has any traffic there, it stays as it is.
func (r *rollout) sole(i int, s *participant, cluster string, is bool) bool {
	switch {
	case s.traffic.next[cluster] == 0 || s.traffic.asFound[cluster]:
		return false
	case !r.shares(i, cluster):
		return is
	case !ByItself(r.contender().Release.Spec.Environment.Strategy), !is && (!s.capacity.enough() || s.capacity.wanted == 0):
		return false
	case r.roles[i] == Contender:
		return r.step.Traffic.Contender > 0 && r.step.Traffic.Incumbent == 0
	case r.roles[i] == Incumbent:
		return r.step.Traffic.Incumbent > 0 && r.step.Traffic.Contender == 0
	}
	return false
}

// shares reports whether a Release other than the i-th has traffic in a cluster, or is to have some.
func (r *rollout) shares(i int, cluster string) bool {
	has := func(q *quantity) bool { return q.asked[cluster] > 0 || q.next[cluster] > 0 }
	for j, release := range r.Releases {
		if s := r.participants[j]; j != i && (s != nil && has(s.traffic) || s == nil && has(r.unmoved(release).traffic)) {
			return true
		}
	}
	return slices.ContainsFunc(r.Leaving, func(release Release) bool { return has(r.unmoved(release).traffic) })
}

// unmark makes the TrafficTarget of a Release that is being deleted say nothing besides weights where others say it.
func (r *rollout) unmark(s *participant) {
	if r.participants == nil || !s.traffic.exists {
		return
	}
	for _, cluster := range s.traffic.clusters {
		is := s.traffic.marks[cluster]
		for i, other := range r.participants {
			is.sole = is.sole && other.traffic.next[cluster] == 0
			if r.previews[i][cluster] != "" {
				is.preview = ""
			}
		}
		s.traffic.remark(cluster, is)
	}
}
