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
	shown := r.shown()
	for cluster := range r.previewClusters {
		i, idle := r.previewIn(cluster, shown)
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
// under way there. shown is the index of the one that is selected now.
func (r *rollout) previewIn(cluster string, shown map[string]int) (i int, idle bool) {
	newest := len(r.Releases) - 1
	contender := r.contender()
	if Complete(contender.Release) && last(contender.Release) {
		return newest, true
	}
	if s := r.participants[newest]; s != nil && s.capacity.enoughIn(cluster) && s.capacity.available[cluster] > 0 {
		return newest, false
	}
	if now, is := shown[cluster]; is {
		return now, false
	}
	return r.incumbent(), true
}

// previewed are the clusters that have a preview Service, by what TrafficTargets say.
func (r *rollout) previewed() map[string]bool {
	out := map[string]bool{}
	for _, release := range r.Releases {
		if release.Traffic == nil {
			continue
		}
		for _, c := range release.Traffic.Status.Clusters {
			if c.Preview != "" {
				out[c.Name] = true
			}
		}
	}
	return out
}

// shown is the index of the oldest Release whose TrafficTarget asks for the preview Service of a cluster that it runs in, by cluster.
func (r *rollout) shown() map[string]int {
	out := map[string]int{}
	for i, release := range r.Releases {
		if release.Traffic == nil {
			continue
		}
		clusters := clustersOf(release) // sorted
		for _, c := range release.Traffic.Spec.Clusters {
			if _, older := out[c.Name]; older || c.Preview != shipper.PreviewRelease {
				continue
			}
			if _, runs := slices.BinarySearch(clusters, c.Name); runs {
				out[c.Name] = i
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

// mark decides what the TrafficTarget of the i-th Release says besides weights.
func (r *rollout) mark(i int, s *participant) {
	if r.participants == nil || !s.traffic.exists {
		return
	}
	if !r.byItself() && len(s.traffic.marks) == 0 && len(r.previewClusters) == 0 {
		return // most rollouts: the loop below would decide nothing
	}
	shares := r.shares(i)
	for _, cluster := range s.traffic.clusters {
		is := s.traffic.marks[cluster]
		is.sole = r.sole(i, s, cluster, is.sole, shares)
		if r.previewClusters[cluster] {
			is.preview = r.previews[i][cluster]
		}
		s.traffic.remark(cluster, is)
	}
}

// sole reports whether the i-th Release is to have all traffic of a cluster at once: from when it has its Pods in every cluster. While no
// other shares the traffic there, it stays as it is.
func (r *rollout) sole(i int, s *participant, cluster string, is bool, shares func(cluster string) bool) bool {
	switch {
	case s.traffic.next[cluster] == 0 || s.traffic.asFound[cluster]:
		return false
	case !shares(cluster):
		return is
	case !r.byItself(), !is && (!s.capacity.enough() || s.capacity.wanted == 0):
		return false
	case r.roles[i] == Contender:
		return r.step.Traffic.Contender > 0 && r.step.Traffic.Incumbent == 0
	case r.roles[i] == Incumbent:
		return r.step.Traffic.Incumbent > 0 && r.step.Traffic.Contender == 0
	}
	return false
}

// byItself is ByItself of the contender's strategy.
func (r *rollout) byItself() bool { return ByItself(r.contender().Release.Spec.Environment.Strategy) }

// shares returns a function that reports whether a Release other than the i-th has traffic in a cluster, or is to have some.
func (r *rollout) shares(i int) func(cluster string) bool {
	var others []*quantity
	for j, release := range r.Releases {
		switch s := r.participants[j]; {
		case j == i:
		case s != nil:
			others = append(others, s.traffic)
		default:
			others = append(others, r.unmoved(release).traffic)
		}
	}
	for _, release := range r.Leaving {
		others = append(others, r.unmoved(release).traffic)
	}
	return func(cluster string) bool {
		return slices.ContainsFunc(others, func(g *quantity) bool { return g.asked[cluster] > 0 || g.next[cluster] > 0 })
	}
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
