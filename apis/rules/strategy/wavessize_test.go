// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/placement"
	"shipper.dev/shipper/apis/rules/strategy"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// manyClusters have names of 63 characters, as long as labels may be.
func manyClusters(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = strings.Repeat("n", 58) + fmt.Sprintf("-%04d", i)
	}
	return out
}

// TestAReleaseOf1000ClustersIsBounded measures a Release with 1000 clusters in 10 waves, of which all that are reached lack what they are
// asked for, and those of the wave in front are blocked. An API server takes 1.5 MiB, and 256 KiB of annotations.
func TestAReleaseOf1000ClustersIsBounded(t *testing.T) {
	const limit, annotations = 512 << 10, 256 << 10
	a, names := newApp(), manyClusters(1000)
	a.release(allIn, 4, names...)
	r := a.release(vanguard, 4, names...)
	assigned := waves.Assigned{}
	for i, name := range names {
		assigned[name] = int32(i / 100)
	}
	s := r.Release.Spec.Environment.Strategy
	for i := range 10 {
		s.Waves = append(s.Waves, shipper.Wave{Name: fmt.Sprint("wave-", i)})
	}
	r.Release.Annotations[shipper.ReleaseWavesAnnotation] = assigned.String()
	r.Release.Spec.TargetWave = new(int32(9))
	d := placement.Decision{Chosen: names, Wanted: 1000}
	for _, name := range names {
		d.Verdicts = append(d.Verdicts, placement.Verdict{
			Cluster: name, Chosen: true, Reason: shipper.PlacementKept, Affinity: 100, Spread: -1000,
		})
	}
	r.Release.Status.Placement = d.Status()
	for sentence, blocked := range map[string][]string{"all lack Pods": nil, "all of the wave in front are blocked": names[900:]} {
		t.Run(sentence, func(t *testing.T) {
			o := a.observed()
			o.BlockedIn = map[string]string{}
			for _, name := range blocked {
				o.BlockedIn[name] = "rollouts blocked by: default/" + strings.Repeat("b", 63)
			}
			plan := strategy.Make(o, metav1.Now())
			rel := r.Release.DeepCopy()
			rel.Status = plan.Outcomes[1].Status
			text, err := json.Marshal(rel)
			if err != nil {
				t.Fatal(err)
			}
			notes, err := json.Marshal(rel.Annotations)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d KiB, %d KiB of annotations, %d KiB of status.placement", len(text)>>10, len(notes)>>10, sizeOf(t, rel.Status.Placement)>>10)
			if len(text) > limit || len(notes) > annotations {
				t.Errorf("it has %d bytes, %d of them annotations", len(text), len(notes))
			}
			longest := slices.MaxFunc(rel.Status.Strategy.Conditions, func(a, b shipper.ReleaseStrategyCondition) int {
				return len(a.Message) - len(b.Message)
			})
			if n := len(longest.Message); n > 4<<10 {
				t.Errorf("a message has %d bytes: %.500s", n, longest.Message)
			}
		})
	}
}

func sizeOf(t *testing.T, o any) int {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return len(text)
}
