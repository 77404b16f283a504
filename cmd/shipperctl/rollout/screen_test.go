// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

var now = time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC)

// canary is a rollout in its second step, with an image that cannot be pulled in one of two clusters.
func canary() *View {
	return &View{
		Namespace: "shop", Application: "super-server", Release: "super-server-6f19aa85-1", Chart: "nginx 0.0.2 (~0.0)",
		RequestedBy: "ann@example.com", RequestedAt: now.Add(-4 * time.Minute), Incumbent: "super-server-4f2a77c1-0",
		Steps: []stepState{{Name: "staging", Achieved: true}, {Name: "canary 50/50", Target: true}, {Name: "full on"}},
		Waiting: []string{
			"release super-server-6f19aa85-1 hasn't achieved capacity in clusters: us-east-1. for more details try " +
				"`kubectl describe ct super-server-6f19aa85-1`",
		},
		Clusters: []Cluster{
			{
				Name: "eu-west-1", Contender: clusterSide{Ready: 5, Wanted: 5, All: 10, Weight: 50},
				Incumbent: &clusterSide{Ready: 5, Wanted: 5, All: 10, Weight: 50},
			},
			{
				Name: "us-east-1", Contender: clusterSide{Ready: 3, Wanted: 5, All: 10},
				Incumbent: &clusterSide{Ready: 10, Wanted: 10, All: 10, Weight: 100},
				Notes:     []string{`2 pods ImagePullBackOff "nginx:boom"`},
			},
		},
		Blocks: blockSummary{Next: "rollout-blocks-global/weekend", NextStart: now.Add(4 * time.Hour)},
	}
}

// soaking is a rollout in its second step, with checks: one that has passed, one that is made, and one that does not count.
func soaking() *View {
	p := canary()
	p.Steps[1].Gate, p.Steps[1].Checks = true, []string{"smoke", "errors", "latency"}
	p.Clusters[1].Contender, p.Clusters[1].Notes = p.Clusters[0].Contender, nil
	p.Clusters[1].Incumbent = p.Clusters[0].Incumbent
	p.Waiting = []string{"check errors has 7 of 10 results in us-east-1"}
	p.Progress = &progressView{State: shipper.AdvancingChecking}
	at := func(eu, us shipper.CheckPhase) []checkInCluster {
		return []checkInCluster{{Name: "eu-west-1", Phase: eu}, {Name: "us-east-1", Phase: us}}
	}
	p.Checks = []checkState{
		{Name: "smoke", Phase: shipper.CheckPassed, Count: 1, Clusters: at(shipper.CheckPassed, shipper.CheckPassed)},
		{
			Name: "errors", Phase: shipper.CheckRunning, Cluster: "us-east-1", Measured: 7, Count: 10, Value: "new = 0.0021, old = 0.0019",
			Clusters: at(shipper.CheckPassed, shipper.CheckRunning),
		},
		{Name: "latency", Phase: shipper.CheckHasFailed, Measured: 2, Count: 10, DryRun: true},
	}
	return p
}

func TestScreen(t *testing.T) {
	time.Local = time.UTC
	for name, view := range map[string]*View{"canary": canary(), "checks": soaking(), "fleet": ofMany()} {
		for _, width := range []int{60, 80, 120, 200} {
			golden := filepath.Join("testdata", fmt.Sprintf("%s-%d.golden", name, width))
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Error(err)
			}
			got := view.Screen(width, now)
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s in %d columns (-want +got):\n%s", name, width, diff)
			}
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func TestScreenIsAsWideAsItMayBe(t *testing.T) {
	for _, width := range []int{30, 40, 80, 120, 200} {
		p := canary()
		p.Clusters[0].Name = strings.Repeat("very-long-", 20)
		for line := range strings.Lines(p.Screen(width, now)) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d columns of %d: %s", n, width, line)
			}
		}
	}
}

func TestLines(t *testing.T) {
	time.Local = time.UTC
	const want = `application: shop/super-server
chart: nginx 0.0.2 (~0.0)
release: super-server-6f19aa85-1, by ann@example.com, 4m ago
incumbent: super-server-4f2a77c1-0
step: 1 of 2, canary 50/50
complete: false
waiting: release super-server-6f19aa85-1 hasn't achieved capacity in clusters: us-east-1. for more details try ` +
		"`kubectl describe ct super-server-6f19aa85-1`" + `
cluster eu-west-1: contender 5 of 5 pods, incumbent 5 of 5 pods, traffic 50 % : 50 %
cluster us-east-1: contender 3 of 5 pods, incumbent 10 of 10 pods, traffic 0 % : 100 %
cluster us-east-1: 2 pods ImagePullBackOff "nginx:boom"
blocks: none in effect
blocks: next: rollout-blocks-global/weekend at Fri 20 Nov 17:00 UTC, in 4h
`
	if diff := cmp.Diff(want, canary().Lines(now)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestSides(t *testing.T) {
	for sentence, tc := range map[string]struct {
		side *clusterSide
		want string
	}{
		"there is none":             {nil, ""},
		"nothing is wanted":         {&clusterSide{All: 10}, "░░░░░░░░░░   0/0"},
		"one of many is there":      {&clusterSide{All: 100, Wanted: 1, Ready: 1}, "█░░░░░░░░░   1/1"},
		"none of one is there":      {&clusterSide{All: 1, Wanted: 1}, "▒▒▒▒▒▒▒▒▒▒   0/1"},
		"more are there than ought": {&clusterSide{All: 4, Wanted: 2, Ready: 8}, "██████████   8/2"},
		"a chart without Pods":      {&clusterSide{}, "░░░░░░░░░░   0/0"},
		"as it was found":           {&clusterSide{Ready: 7, asFound: true}, "██████████   7/?"},
		"as it was found of many":   {&clusterSide{Ready: 5, All: 10, asFound: true}, "█████░░░░░   5/?"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := tc.side.draw(10, 5); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
