// SPDX-License-Identifier: Apache-2.0

package block

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// naming is a block that names clusters.
func naming(name string, clusters ...string) *shipper.RolloutBlock {
	b := &shipper.RolloutBlock{}
	b.Namespace, b.Name = "frontend", name
	if len(clusters) > 0 {
		b.Spec.Scope = &shipper.RolloutBlockScope{Clusters: clusters}
	}
	return b
}

// wavesOf puts eu-1 and us-1 into wave 0, and ap-1 into wave 1.
func wavesOf(wave, step int32) func(*shipper.Release) {
	return func(r *shipper.Release) {
		r.Annotations[shipper.ReleaseClustersAnnotation] = "ap-1,eu-1,us-1"
		r.Annotations[shipper.ReleaseWavesAnnotation] = "ap-1=1,eu-1=0,us-1=0"
		r.Spec.Environment.Strategy = &shipper.RolloutStrategy{
			Steps: make([]shipper.RolloutStrategyStep, 2), Waves: []shipper.Wave{{Name: "canary"}, {Name: "rest"}},
		}
		r.Spec.TargetWave, r.Spec.TargetStep = &wave, step
	}
}

func TestABlockThatNamesClustersHoldsTheseAlone(t *testing.T) {
	conditional := naming("conditional", "eu-1")
	conditional.Spec.MatchConditions = []shipper.RolloutBlockMatchCondition{{Name: "all", Expression: "true"}}
	waved := rel(0, env("nginx", "eu"), wavesOf(0, 0))
	unplaced := rel(0, env("nginx", "eu"), wavesOf(0, 0), func(r *shipper.Release) {
		delete(r.Annotations, shipper.ReleaseClustersAnnotation)
	})
	type split struct {
		Whole string
		In    Clusters
	}
	says := func(names string) string { return shipper.BlockedBy + names }
	for sentence, tc := range map[string]struct {
		release *shipper.Release
		blocks  []*shipper.RolloutBlock
		want    split
	}{
		"nothing":               {waved, nil, split{In: Clusters{}}},
		"a block of everything": {waved, []*shipper.RolloutBlock{naming("a")}, split{says("frontend/a"), Clusters{}}},
		"a block of a cluster":  {waved, []*shipper.RolloutBlock{naming("a", "eu-1")}, split{In: Clusters{"eu-1": says("frontend/a")}}},
		"two blocks of one cluster": {waved, []*shipper.RolloutBlock{naming("b", "eu-1", "ap-1"), naming("a", "eu-1")}, split{
			In: Clusters{"eu-1": says("frontend/a,frontend/b"), "ap-1": says("frontend/b")},
		}},
		"one of each": {waved, []*shipper.RolloutBlock{naming("a"), naming("b", "eu-1")}, split{
			says("frontend/a"), Clusters{"eu-1": says("frontend/b")},
		}},
		"a block of another cluster": {waved, []*shipper.RolloutBlock{naming("a", "lab-1")}, split{In: Clusters{}}},
		"a block with conditions":    {waved, []*shipper.RolloutBlock{conditional}, split{says("frontend/conditional"), Clusters{}}},
		"a Release without waves": {rel(0, env("nginx", "eu"), in("eu-1,us-1")), []*shipper.RolloutBlock{naming("a", "eu-1")}, split{
			Whole: says("frontend/a"),
		}},
		"a Release without clusters": {unplaced, []*shipper.RolloutBlock{naming("a", "eu-1")}, split{Whole: says("frontend/a")}},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := shop(tc.release).Rollout()
			c.Matches = func(*shipper.RolloutBlock) bool { return true }
			whole, held := Judge(tc.blocks, nil, c, time.Now()).Split(tc.release)
			if diff := cmp.Diff(tc.want, split{whole.Message(), held}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAMoveIsStoppedWhereNoneOfItsClustersMayChange(t *testing.T) {
	at := func(wave, step int32) *shipper.Release { return rel(0, env("nginx", "eu"), wavesOf(wave, step)) }
	type outcome struct {
		Clusters []string
		Stopped  string
		Held     []string
	}
	first := []string{"eu-1", "us-1"}
	eu := naming("a", "eu-1")
	for sentence, tc := range map[string]struct {
		old, rel *shipper.Release
		blocks   []*shipper.RolloutBlock
		want     outcome
	}{
		"one of two is held": {at(0, 0), at(0, 1), []*shipper.RolloutBlock{eu}, outcome{Clusters: first, Held: []string{"eu-1"}}},
		"both are held":      {at(0, 0), at(0, 1), []*shipper.RolloutBlock{naming("a", first...)}, outcome{first, "frontend/a", nil}},
		"both, by two blocks": {
			at(0, 0), at(0, 1), []*shipper.RolloutBlock{eu, naming("b", "us-1")}, outcome{first, "frontend/a,frontend/b", nil},
		},
		"one of another wave": {at(0, 1), at(1, 0), []*shipper.RolloutBlock{eu}, outcome{Clusters: []string{"ap-1"}}},
		"the only one":        {at(0, 1), at(1, 0), []*shipper.RolloutBlock{naming("a", "ap-1")}, outcome{[]string{"ap-1"}, "frontend/a", nil}},
		"over the end of a wave": {
			at(0, 0), at(1, 0), []*shipper.RolloutBlock{naming("a", "ap-1", "eu-1")},
			outcome{Clusters: []string{"ap-1", "eu-1", "us-1"}, Held: []string{"ap-1", "eu-1"}},
		},
		"back, one is held":     {at(0, 1), at(0, 0), []*shipper.RolloutBlock{eu}, outcome{Clusters: first, Held: []string{"eu-1"}}},
		"a block of everything": {at(0, 0), at(0, 1), []*shipper.RolloutBlock{eu, naming("c")}, outcome{first, "frontend/c", []string{"eu-1"}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			c, clusters := shop(tc.old).Move(tc.old, tc.rel)
			v, held := Judge(tc.blocks, nil, c, time.Now()).Narrowed(tc.rel, clusters)
			got := outcome{Clusters: clusters, Stopped: FormatOverrides(Names(v.Effective)), Held: held.Of(clusters)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAListOfClustersIsBounded(t *testing.T) {
	var many []string
	for i := range 12 {
		many = append(many, fmt.Sprint("c", i))
	}
	if got, want := List(many), "c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 and 2 more"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
