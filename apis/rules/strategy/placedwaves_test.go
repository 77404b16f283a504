// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// placedInWaves are Releases r0, complete, and r1 with the waves canary (a) and production (b, c, d), so many clusters of it at a time.
func placedInWaves(t *testing.T, concurrency int) (*placed, *shipper.Release) {
	t.Helper()
	p := &placed{broken: map[string]bool{}, down: map[string]bool{}}
	p.release("r0", "100%", "a", "b", "c", "d")
	p.run(t)
	p.release("r1", "1", "a", "b", "c", "d")
	rel := p.releases[1].Release
	rel.Annotations[shipper.ReleaseWavesAnnotation] = "a=0,b=1,c=1,d=1"
	rel.Spec.Environment.Strategy = &shipper.RolloutStrategy{
		Waves: []shipper.Wave{{Name: "canary"}, {Name: "production", MaxConcurrency: ptr.To(intstr.FromInt(concurrency))}},
	}
	return p, rel
}

// moveBack lowers targetWave as admission stamps it.
func moveBack(rel *shipper.Release, wave int32) {
	rel.Spec.TargetWave = &wave
	rel.Annotations[shipper.ReleaseMovedAnnotation] = `{"by":"ann","time":"2026-01-01T00:00:00Z","from":0,"to":0,"fromWave":1,"count":2}`
}

func TestResourcesOfLaterWavesKeepTheEarlierRelease(t *testing.T) {
	p, rel := placedInWaves(t, 2)
	checkStates(t, p.run(t), "a:r1 b:r0 c:r0 d:r0")
	if p.complete("r1") || rel.Status.AchievedStep == nil {
		t.Errorf("complete %t, achieved %v: the first wave alone is achieved", p.complete("r1"), rel.Status.AchievedStep)
	}
	want := []shipper.ReleaseWave{{Name: "canary", Clusters: 1, Achieved: 1}, {Name: "production", Clusters: 3}}
	if diff := cmp.Diff(want, rel.Status.Waves); diff != "" {
		t.Errorf("waves (-want +got):\n%s", diff)
	}
}

func TestResourcesChangeAtMostMaxConcurrencyClustersOfAWave(t *testing.T) {
	p, rel := placedInWaves(t, 2)
	p.run(t)
	rel.Spec.TargetWave = ptr.To[int32](1)
	checkStates(t, p.run(t), "a:r1 b:r1 c:r1 d:r0", "a:r1 b:r1 c:r1 d:r1")
	p.run(t)
	if want := (&shipper.AchievedStep{Wave: 1}); !p.complete("r1") || cmp.Diff(want, rel.Status.AchievedStep) != "" {
		t.Errorf("complete %t, achieved %v", p.complete("r1"), rel.Status.AchievedStep)
	}
}

func TestABrokenReleaseOfResourcesStopsInItsWave(t *testing.T) {
	p, rel := placedInWaves(t, 1)
	p.broken["r1"] = true
	checkStates(t, p.run(t), "a:r1 b:r0 c:r0 d:r0")
	rel.Spec.TargetWave = ptr.To[int32](1) // with the verb skip
	checkStates(t, p.run(t), "a:r1 b:r1 c:r0 d:r0")
}

func TestAWaveOfResourcesPassesAClusterThatIsDownAndWaitsForIt(t *testing.T) {
	p, rel := placedInWaves(t, 1)
	p.run(t)
	rel.Spec.TargetWave, p.down["b"] = ptr.To[int32](1), true
	p.run(t)
	if got := p.describe(); got != "a:r1 b:r0 c:r1 d:r1" || p.complete("r1") {
		t.Errorf("got %s, complete %t", got, p.complete("r1"))
	}
	p.down["b"] = false
	p.run(t)
	p.run(t)
	if got := p.describe(); got != "a:r1 b:r1 c:r1 d:r1" || !p.complete("r1") {
		t.Errorf("got %s, complete %t", got, p.complete("r1"))
	}
}

func TestHoldBeginsNoClusterOfAWaveOfResources(t *testing.T) {
	p, rel := placedInWaves(t, 1)
	p.run(t)
	rel.Spec.TargetWave, rel.Spec.Hold = ptr.To[int32](1), "incident"
	checkStates(t, p.run(t), "a:r1 b:r0 c:r0 d:r0")
}

func TestAWaveOfResourcesThatGoesBackReturnsToTheEarlierRelease(t *testing.T) {
	p, rel := placedInWaves(t, 3)
	p.run(t)
	rel.Spec.TargetWave = ptr.To[int32](1)
	p.run(t)
	p.run(t)
	if !p.complete("r1") {
		t.Fatal("it is not complete")
	}
	moveBack(rel, 0)
	p.install()
	plan := strategy.Make(strategy.Observed{Releases: p.releases}, metav1.Unix(0, 0))
	if w := plan.Outcomes[0].Write.Installation; w == nil || cmp.Diff([]string{"b", "c", "d"}, w.Clusters) != "" {
		t.Errorf("the earlier Release is written as %v", w)
	}
	if w := plan.Outcomes[1].Write.Installation; w != nil {
		t.Errorf("the newer Release drops clusters before the earlier one has them: %v", w.Clusters)
	}
	for range 4 {
		p.install()
		p.step(t)
		for _, cluster := range []string{"a", "b", "c", "d"} {
			if p.head(cluster) == "" {
				t.Errorf("no target has %s: its objects are deleted", cluster)
			}
		}
	}
	if got := p.describe(); got != "a:r1 b:r0 c:r0 d:r0" || p.complete("r1") {
		t.Errorf("got %s, complete %t", got, p.complete("r1"))
	}
	rel.Spec.TargetWave = ptr.To[int32](1)
	p.run(t)
	p.run(t)
	if got := p.describe(); got != "a:r1 b:r1 c:r1 d:r1" || !p.complete("r1") {
		t.Errorf("got %s, complete %t", got, p.complete("r1"))
	}
}

func TestAnAbortReturnsTheWavesOfResourcesThatHaveBegun(t *testing.T) {
	p, _ := placedInWaves(t, 1)
	p.run(t)
	p.delete()
	p.run(t)
	if got := p.describe(); got != "a:r0 b:r0 c:r0 d:r0" || len(p.leaving) > 0 {
		t.Errorf("got %s, leaving %d", got, len(p.leaving))
	}
}
