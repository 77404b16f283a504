// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
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

// describe is a wave in one line: canary 1/1, or production 3/9, 1 failed (us-2), 2 moving (eu-1, us-1), 1 blocked (ap-1). It names most
// clusters of each kind.
func (w waveState) describe(most int) string {
	out := fmt.Sprintf("%s %d/%d", w.Name, w.Achieved, w.Clusters)
	counted := func(n int32, what string, clusters []string) {
		if n == 0 {
			return
		}
		clusters = clusters[:min(len(clusters), most)]
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

// maxWaves is how many waves a screen shows, and maxWaveClusters how many clusters it names of each kind in a wave.
const maxWaves, maxWaveClusters = 8, 3

// waves shows the waves: those done, the one that is asked for, and those after it. Of many waves it shows those that need a look, and
// counts the others.
func (p *View) waves(line func(string), width int) {
	target := slices.IndexFunc(p.Waves, func(w waveState) bool { return w.Target })
	var names []string
	for _, i := range p.shownWaves(target) {
		w, mark := &p.Waves[i], "·"
		switch {
		case w.Target && (w.Achieved < w.Clusters || !p.Complete):
			mark = "●"
		case i <= target || target < 0:
			mark = "✓"
		}
		names = append(names, mark+" "+w.describe(maxWaveClusters))
	}
	if more := len(p.Waves) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more waves: -o json", more))
	}
	if len(names) > 0 {
		flow(line, width, label("waves"), label(""), "    ", names)
	}
}

// shownWaves are the indices of the waves that a screen shows, sorted: the one that is asked for, those with clusters that have failed, are
// blocked or moving, and those nearest to it.
func (p *View) shownWaves(target int) []int {
	all := make([]int, len(p.Waves))
	for i := range all {
		all[i] = i
	}
	concern := func(i int) int {
		switch w := &p.Waves[i]; {
		case w.Target:
			return 0
		case w.Failed > 0:
			return 1
		case w.Blocked > 0:
			return 2
		case w.Moving > 0:
			return 3
		}
		return 4
	}
	distance := func(i int) int { return max(i-target, target-i) }
	slices.SortStableFunc(all, func(a, b int) int {
		return cmp.Or(cmp.Compare(concern(a), concern(b)), cmp.Compare(distance(a), distance(b)))
	})
	return slices.Sorted(slices.Values(all[:min(len(all), maxWaves)]))
}

// waveTexts describes each wave, and marks the one that is asked for.
func (p *View) waveTexts() (out []string) {
	for _, w := range p.Waves {
		text := w.describe(len(w.MovingClusters) + len(w.BlockedClusters) + len(w.FailedClusters))
		if w.Target {
			text += ", asked for"
		}
		out = append(out, text)
	}
	return out
}
