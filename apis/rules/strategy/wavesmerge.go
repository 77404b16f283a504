// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// wishNow is the write of the part for its i-th Release. Where the cluster has to wait, only what was found there is requested.
func (p *part) wishNow(i int) Write {
	if p.acts {
		return p.wish(i)
	}
	return newRollout(p.Observed, p.now).wish(i)
}

// write merges what the parts want of the targets of the i-th Release.
func (w *byWave) write(i int) Write {
	release := w.Releases[i]
	m := mergeOf(release, w.stages == nil || w.roles[i] == Superseded)
	m.blocked = w.BlockedIn
	for _, cluster := range w.names {
		p := w.parts[cluster]
		if j := slices.Index(p.index, i); j >= 0 && !w.isBlocked(p) {
			m.add(cluster, p.wishNow(j))
		}
	}
	if i == len(w.Releases)-1 && w.stages != nil {
		for _, cluster := range chosenOf(release) {
			if wave, known := w.assigned[cluster]; known && wave <= w.at.Wave && w.BlockedIn[cluster] == "" {
				m.find(cluster)
			}
		}
	}
	return m.result(i == len(w.Releases)-1)
}

// merge collects the new specs of the targets of one Release.
type merge struct {
	of Release
	// keeps is true if clusters that are not the Release's any more stay in its targets.
	keeps     bool
	installed map[string]bool
	capacity  map[string]shipper.ClusterCapacityTarget
	traffic   map[string]shipper.ClusterTrafficTarget
	// usual is the largest number of Pods that the CapacityTarget says of a cluster.
	usual int32
	// blocked are the clusters that RolloutBlocks hold: they stay in the targets.
	blocked map[string]string
}

func mergeOf(r Release, keeps bool) *merge {
	m := &merge{
		of: r, keeps: keeps, installed: map[string]bool{},
		capacity: map[string]shipper.ClusterCapacityTarget{}, traffic: map[string]shipper.ClusterTrafficTarget{},
	}
	for _, cluster := range lists(r) {
		m.installed[cluster] = true
	}
	if r.Capacity != nil {
		for _, c := range r.Capacity.Spec.Clusters {
			m.capacity[c.Name], m.usual = c, max(m.usual, c.TotalReplicaCount)
		}
	}
	if r.Traffic != nil {
		for _, c := range r.Traffic.Spec.Clusters {
			m.traffic[c.Name] = c
		}
	}
	return m
}

// add adds what is wanted in one cluster.
func (m *merge) add(cluster string, want Write) {
	if want.Installation != nil && slices.Contains(want.Installation.Clusters, cluster) {
		m.installed[cluster] = true
	}
	if want.Capacity != nil {
		for _, c := range want.Capacity.Clusters {
			if _, there := m.capacity[c.Name]; !there {
				c.TotalReplicaCount = m.usual
			}
			m.capacity[c.Name] = c
		}
	}
	if want.Traffic != nil {
		for _, c := range want.Traffic.Clusters {
			m.traffic[c.Name] = c
		}
	}
}

// find adds a cluster as it is found.
func (m *merge) find(cluster string) {
	if _, there := m.capacity[cluster]; !there {
		m.capacity[cluster] = shipper.ClusterCapacityTarget{Name: cluster, TotalReplicaCount: m.usual, AsFound: true}
	}
	if _, there := m.traffic[cluster]; !there {
		m.traffic[cluster] = shipper.ClusterTrafficTarget{Name: cluster, AsFound: true}
	}
}

// result holds the specs that differ from what they are.
func (m *merge) result(newest bool) Write {
	var out Write
	chosen := chosenOf(m.of)
	drop := func(cluster string) bool {
		_, is := slices.BinarySearch(chosen, cluster)
		return !m.keeps && !is && m.blocked[cluster] == ""
	}
	if it := m.of.Installation; it != nil {
		want := slices.DeleteFunc(slices.Sorted(maps.Keys(m.installed)), drop)
		if !slices.Equal(lists(m.of), want) || it.Spec.CanOverride != newest {
			out.Installation = it.Spec.DeepCopy()
			out.Installation.Clusters, out.Installation.CanOverride = append([]string{}, want...), newest
		}
	}
	if ct := m.of.Capacity; ct != nil {
		spec := &shipper.CapacityTargetSpec{Clusters: sorted(m.capacity, drop)}
		if !sameItems(ct.Spec.Clusters, m.capacity, len(spec.Clusters)) {
			out.Capacity = spec
		}
	}
	if tt := m.of.Traffic; tt != nil {
		spec := &shipper.TrafficTargetSpec{Clusters: sorted(m.traffic, drop)}
		if !sameItems(tt.Spec.Clusters, m.traffic, len(spec.Clusters)) {
			out.Traffic = spec
		}
	}
	return out
}

// sorted are the values by their keys, without those that are dropped.
func sorted[T any](all map[string]T, drop func(string) bool) []T {
	out := []T{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !drop(key) {
			out = append(out, all[key])
		}
	}
	return out
}

// sameItems reports whether a list has so many items, all of them those of the map.
func sameItems[T interface {
	comparable
	shipper.ClusterCapacityTarget | shipper.ClusterTrafficTarget
}](is []T, want map[string]T, count int) bool {
	if len(is) != count {
		return false
	}
	known := make(map[T]bool, len(want))
	for _, item := range want {
		known[item] = true
	}
	return !slices.ContainsFunc(is, func(item T) bool { return !known[item] })
}

// covered are the superseded Releases that may go: those in whose place others serve in every cluster that they run in.
func (w *byWave) covered(ready bool) []string {
	var out []string
	for i, release := range w.Releases {
		if w.roles[i] != Superseded {
			continue
		}
		name, why := release.Release.Name, ""
		var behind []string
		for _, cluster := range w.names {
			p := w.parts[cluster]
			if j := slices.Index(p.index, i); j >= 0 && !p.covers(j) {
				behind = append(behind, cluster)
				if why == "" {
					why = p.uncovered[name]
				}
			}
		}
		switch {
		case release.Lost():
			why = "kept as it is until it has targets again"
		case !ready:
			why = fmt.Sprintf("kept as it is until Release %q is at its step", w.rel.Name)
		case len(behind) == 0:
			if why = w.retireSuperseded(release); release.Held == "" {
				out = append(out, name)
			}
		case why == "":
			why = fmt.Sprintf("kept in clusters %s until Release %q replaces it there", bracketed(behind), w.rel.Name)
		}
		w.uncovered[name] = why
	}
	return out
}

// covers reports whether others serve in the place of the j-th Release of the part.
func (p *part) covers(j int) bool {
	if p.participants == nil {
		return false
	}
	if name := p.Releases[j].Release.Name; p.roles[j] == Superseded {
		return slices.Contains(p.covered, name)
	}
	return p.atPosition() && !p.givesUp() && last(p.contender().Release)
}

// planLeaving plans for the Releases that are being deleted.
func (w *byWave) planLeaving(now metav1.Time) []Leaving {
	planned := map[string][]Leaving{}
	for _, cluster := range w.names {
		if p := w.parts[cluster]; len(p.leaving) > 0 {
			planned[cluster] = p.planDeletions(now)
		}
	}
	var out []Leaving
	for i, release := range w.Leaving {
		d := Leaving{Ready: true, Status: *release.Release.Status.DeepCopy()}
		m := mergeOf(release, true)
		var waits []string
		for _, cluster := range w.names {
			j := slices.Index(w.parts[cluster].leaving, i)
			if j < 0 {
				continue
			}
			one := planned[cluster][j]
			m.add(cluster, one.Write)
			if !one.Ready {
				d.Ready, waits = false, append(waits, cluster)
			}
		}
		if w.Blocked == "" {
			d.Write = m.result(false)
		}
		d.Status.Conditions = shipper.SetCondition(d.Status.Conditions, w.departing(d, release, waits), now)
		d.Status.ObservedGeneration = release.Release.Generation
		out = append(out, d)
	}
	return out
}

// maxMovingClusters bounds the clusters that are named in the figures of a wave.
const maxMovingClusters = 10

// figures are those of each wave.
func (w *byWave) figures() []shipper.ReleaseWave {
	if w.strategy == nil {
		return nil
	}
	out := make([]shipper.ReleaseWave, len(w.strategy.Waves))
	for i, wave := range w.strategy.Waves {
		out[i].Name, out[i].Clusters = wave.Name, int32(len(w.assigned.In(int32(i), chosenOf(w.contender()))))
	}
	for _, cluster := range w.names {
		p := w.parts[cluster]
		if p.wave < 0 || int(p.wave) >= len(out) {
			continue
		}
		f := &out[p.wave]
		switch {
		case p.state == waves.Done && !w.isAhead(p):
			f.Achieved++
		case w.isBlocked(p):
			if f.Blocked++; len(f.BlockedClusters) < maxMovingClusters {
				f.BlockedClusters = append(f.BlockedClusters, cluster)
			}
			if p.state == waves.Moving && !p.lags() {
				countMoving(f, cluster)
			}
		case p.lags() && !p.recovers: // it takes no slot
		case p.state == waves.Moving || p.state == waves.Waiting && p.acts || p.recovers:
			countMoving(f, cluster)
		}
	}
	w.countFailed(out)
	return out
}

// countMoving counts a cluster that is moving.
func countMoving(f *shipper.ReleaseWave, cluster string) {
	if f.Moving++; len(f.MovingClusters) < maxMovingClusters {
		f.MovingClusters = append(f.MovingClusters, cluster)
	}
}

// isLast reports whether the position is the last.
func (w *byWave) isLast() bool { return w.at == position.Last(w.strategy) }
