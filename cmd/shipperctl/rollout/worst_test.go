// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ofMany is a rollout in 200 clusters: 3 have problems, 5 lack Pods, 2 move traffic, 90 are at the step and the others have not begun.
func ofMany() *View {
	p := canary()
	p.Incumbent, p.Clusters = "web-0", nil
	p.Waves = []waveState{
		{Name: "canary", Clusters: 100, Achieved: 90, Moving: 10, MovingClusters: []string{"c000", "c001"}, Target: true},
		{Name: "rest", Clusters: 100, Blocked: 12, BlockedClusters: []string{"c150"}},
	}
	for i := range 200 {
		c := Cluster{Name: fmt.Sprintf("c%03d", i), Incumbent: &clusterSide{Ready: 4, Wanted: 4, All: 4, Weight: 4}}
		c.Contender = clusterSide{Ready: 4, Wanted: 4, All: 4, Weight: 4}
		switch {
		case i%70 == 69:
			c.Contender.Ready, c.Notes = 1, []string{"3 pods ImagePullBackOff"}
		case i >= 100:
			c.Contender = clusterSide{All: 4}
		case i%20 == 3:
			c.Contender.Ready = 2
		case i == 50 || i == 51:
			c.Moving = true
		}
		p.Clusters = append(p.Clusters, c)
	}
	return p
}

func TestOneScreenShowsTheWorstOf200Clusters(t *testing.T) {
	shown, rest := worst(ofMany().Clusters)
	var names []string
	for _, c := range shown {
		names = append(names, c.Name)
	}
	want := []string{"c069", "c139", "c003", "c023", "c043", "c063", "c083", "c050", "c051", "c000", "c001", "c002", "c004", "c005", "c006",
		"c007", "c008", "c009", "c010", "c011"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if want := "and 180 more clusters: 81 as the step has them, 99 without pods of the contender. All of them: -o json"; rest != want {
		t.Errorf("%q, want %q", rest, want)
	}
	text := ofMany().Screen(100, now)
	if n := strings.Count(text, "\n"); n > 48 {
		t.Errorf("it has %d lines:\n%s", n, text)
	}
	if !strings.Contains(text, "rest 0/100, 12 blocked (c150 and 11 more)") {
		t.Error(text)
	}
}

func TestAScreenShowsAllOfFewClusters(t *testing.T) {
	shown, rest := worst(ofMany().Clusters[:20])
	if len(shown) != 20 || shown[0].Name != "c000" || rest != "" {
		t.Errorf("%d clusters, the first is %s; %q", len(shown), shown[0].Name, rest)
	}
}

func TestAScreenShowsTheWavesThatNeedALook(t *testing.T) {
	p := canary()
	for i := range 100 {
		p.Waves = append(p.Waves, waveState{Name: fmt.Sprintf("w%02d", i), Clusters: 10, Target: i == 40})
	}
	p.Waves[3].Failed, p.Waves[3].FailedClusters = 4, []string{"a", "b", "c", "d"}
	p.Waves[90].Blocked, p.Waves[90].BlockedClusters = 1, []string{"e"}
	var got []string
	p.waves(func(line string) { got = append(got, line) }, 80)
	want := []string{
		"waves      ✓ w03 0/10, 4 failed (a, b, c and 1 more)    ✓ w37 0/10    ✓ w38 0/10",
		"           ✓ w39 0/10    ● w40 0/10    · w41 0/10    · w42 0/10",
		"           · w90 0/10, 1 blocked (e)    and 92 more waves: -o json",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
