// SPDX-License-Identifier: Apache-2.0

package waves

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"shipper.dev/shipper/apis/rules/placement"
	"shipper.dev/shipper/apis/rules/position"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Assigned has, by cluster, the index of its wave.
type Assigned map[string]int32

// Assign gives each of the named clusters a wave: the one that it is known to be in, else the first that selects it. A cluster that no wave
// selects, or that there is no Cluster of, gets none.
func Assign(s *shipper.RolloutStrategy, names []string, known Assigned, clusters []shipper.Cluster) Assigned {
	selectors, rest := make([]labels.Selector, len(s.Waves)), int32(-1)
	for i, wave := range s.Waves {
		if wave.ClusterSelector == nil {
			rest = int32(i)
			continue
		}
		var err error
		if selectors[i], err = metav1.LabelSelectorAsSelector(wave.ClusterSelector); err != nil {
			selectors[i] = labels.Nothing() // admission refuses it
		}
	}
	out, there := Assigned{}, make(map[string]*shipper.Cluster, len(clusters))
	for i := range clusters {
		there[clusters[i].Name] = &clusters[i]
	}
	for _, name := range names {
		if wave, is := known[name]; is {
			out[name] = wave
			continue
		}
		cluster := there[name]
		if cluster == nil {
			continue
		}
		wave := slices.IndexFunc(selectors, func(s labels.Selector) bool { return s != nil && s.Matches(placement.LabelsOf(cluster)) })
		if wave >= 0 {
			out[name] = int32(wave)
		} else if rest >= 0 {
			out[name] = rest
		}
	}
	return out
}

// Parse reads the annotation of a Release. What it cannot read it leaves out: such a cluster has no wave.
func Parse(rel *shipper.Release) Assigned {
	out := Assigned{}
	for _, item := range strings.Split(rel.Annotations[shipper.ReleaseWavesAnnotation], ",") {
		name, wave, is := strings.Cut(strings.TrimSpace(item), "=")
		if n, err := strconv.ParseInt(wave, 10, 32); is && err == nil && n >= 0 {
			out[name] = int32(n)
		}
	}
	return out
}

// String is the annotation.
func (a Assigned) String() string {
	items := make([]string, 0, len(a))
	for _, name := range slices.Sorted(maps.Keys(a)) {
		items = append(items, fmt.Sprintf("%s=%d", name, a[name]))
	}
	return strings.Join(items, ",")
}

// In are those of the named clusters that are in a wave.
func (a Assigned) In(wave int32, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		is, known := a[name]
		return !known || is != wave
	})
}

// Without are those of the named clusters that are in no wave of a strategy.
func (a Assigned) Without(s *shipper.RolloutStrategy, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		is, known := a[name]
		return known && is <= s.LastWave()
	})
}

// Front are the clusters that a position of a Release is about: all of the named ones without waves, else those of its wave.
func Front(rel *shipper.Release, names []string) []string {
	if !position.HasWaves(rel) {
		return names
	}
	return Parse(rel).In(position.Of(rel).Wave, names)
}

// Reached are those of the named clusters of a Release whose waves have begun; all of them without waves.
func Reached(rel *shipper.Release, names []string) []string {
	if !position.HasWaves(rel) {
		return names
	}
	return Parse(rel).Reached(position.Of(rel), names)
}

// Reached are those of the named clusters whose waves have begun at a position.
func (a Assigned) Reached(at position.Position, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		wave, known := a[name]
		return !known || wave > at.Wave
	})
}

// Moved are those of the named clusters of which the position of rel asks something else than that of old, a Release with the same waves.
func Moved(old, rel *shipper.Release, names []string) []string {
	assigned, out := Parse(rel), []string{}
	for _, name := range names {
		before, was := assigned.StepIn(old, name)
		if after, is := assigned.StepIn(rel, name); is != was || after != before {
			out = append(out, name)
		}
	}
	return out
}

// StepIn is the step that a Release is to have in one of its clusters. reached is false if the wave of the cluster has not begun, or it is
// in none.
func StepIn(rel *shipper.Release, cluster string) (step int32, reached bool) {
	if !position.HasWaves(rel) {
		return rel.Spec.TargetStep, true
	}
	return Parse(rel).StepIn(rel, cluster)
}

// StepIn is StepIn of a Release whose clusters have these waves.
func (a Assigned) StepIn(rel *shipper.Release, cluster string) (step int32, reached bool) {
	at := position.Of(rel)
	if !position.HasWaves(rel) {
		return at.Step, true
	}
	wave, known := a[cluster]
	switch {
	case !known || wave > at.Wave:
		return 0, false
	case wave < at.Wave:
		return rel.Spec.Environment.Strategy.LastStep(), true
	}
	return at.Step, true
}
