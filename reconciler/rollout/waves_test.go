// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// wavedRelease has cluster a in its first wave, and in the second one those with a label, or all the rest.
func wavedRelease(clusters, assigned string, second *metav1.LabelSelector) *shipper.Release {
	r := releaseAt(0, clusters)
	r.Spec.Environment.ClusterRequirements.Regions[0].Replicas = ptr.To[int32](2)
	r.Spec.Environment.Strategy.Waves = []shipper.Wave{
		{Name: "canary", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{shipper.ClusterLabel: "a"}}},
		{Name: "production", ClusterSelector: second},
	}
	if assigned != "" {
		r.Annotations[shipper.ReleaseWavesAnnotation] = assigned
	}
	return r
}

func joinedCluster(name string) shipper.Cluster { return clusterNamed(name) }

func TestClustersGetTheirWavesWithTheChoice(t *testing.T) {
	s := observedReleases(strategy.Release{Release: wavedRelease("", "", nil)})
	s.clusters = []shipper.Cluster{joinedCluster("a"), joinedCluster("b")}
	p := planReleases(s, at)
	if diff := cmp.Diff([]string{"a", "b"}, p.clusters.choice); diff != "" {
		t.Errorf("choice (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[int]waves.Assigned{0: {"a": 0, "b": 1}}, p.clusters.assigned); diff != "" {
		t.Errorf("waves (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"choose a,b", "make targets of web-0 in [a]"}, describePlan(s, p)); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

func TestTheTargetsOfAReleaseWithWavesInstallNothingAtFirst(t *testing.T) {
	it := installationTarget(wavedRelease("a,b", "a=0,b=1", nil), []string{"a", "b"}, nil, true)
	if len(it.Spec.Clusters) != 0 {
		t.Errorf("it lists %v", it.Spec.Clusters)
	}
}

func TestATargetThatAnEarlierReleaseHasLostListsItsClustersAgain(t *testing.T) {
	it := installationTarget(wavedRelease("a,b", "a=0,b=1", nil), []string{"a", "b"}, nil, false)
	if diff := cmp.Diff([]string{"a", "b"}, it.Spec.Clusters); diff != "" {
		t.Errorf("nothing adds the clusters that the waves of the newest Release do not reach (-want +got):\n%s", diff)
	}
}

func TestAWaveThatHasBegunHasTargets(t *testing.T) {
	r := wavedRelease("a,b", "a=0,b=1", nil)
	r.Spec.TargetWave = ptr.To[int32](1)
	s := observedReleases(strategy.Release{Release: r})
	if diff := cmp.Diff([]string{"make targets of web-0 in [a b]"}, describePlan(s, planReleases(s, at))); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

func TestAnEmptyWaveHasTargetsWithoutClusters(t *testing.T) {
	s := observedReleases(strategy.Release{Release: wavedRelease("a,b", "a=1,b=1", nil)})
	if diff := cmp.Diff([]string{"make targets of web-0 in []"}, describePlan(s, planReleases(s, at))); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

func TestAClusterThatHadNoWaveGetsOneWhenALabelSelectsIt(t *testing.T) {
	prod := &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}
	newest := wavedRelease("a,b", "a=0", prod)
	if !undecidedClusters(newest) {
		t.Error("no cluster is read for it")
	}
	s := observedReleases(strategy.Release{Release: newest})
	if p := planReleases(s, at).clusters; len(p.changes) > 0 {
		t.Errorf("it is written without a label: %+v", p)
	}
	s.clusters[1].Labels = map[string]string{"tier": "prod"}
	p := planReleases(s, at).clusters
	if diff := cmp.Diff(map[int]waves.Assigned{0: {"a": 0, "b": 1}}, p.assigned); diff != "" || len(p.changes) != 1 {
		t.Errorf("%+v (-want +got):\n%s", p.changes, diff)
	}
	if c := ofPlacement(newest, p, releasesDone{}); c.Status != "False" || c.Reason != shipper.NoWaveForClusters {
		t.Errorf("%+v", c)
	}
	newest.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseScheduled, Status: "False", Reason: shipper.NoWaveForClusters}}
	if !(strategy.Release{Release: newest}).Lost() {
		t.Error("it is taken for one that was never scheduled")
	}
}

func TestAConditionNamesFewOfManyClustersWithoutAWave(t *testing.T) {
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("c%04d", i)
	}
	c := ofPlacement(wavedRelease(strings.Join(names, ","), "", nil), clustersPlan{}, releasesDone{})
	if !strings.Contains(c.Message, "[c0000 ") || !strings.Contains(c.Message, "c0009] and 990 more, which") {
		t.Errorf("it says %.300s", c.Message)
	}
}

func TestAClusterThatJoinsAmidWavesWaitsUntilTheReleaseIsComplete(t *testing.T) {
	old, newest := wavedRelease("a", "a=0", nil), wavedRelease("a", "a=0", nil)
	for i, r := range []*shipper.Release{old, newest} {
		r.Spec.Environment.ClusterRequirements = shipper.ClusterRequirements{Placement: &shipper.Placement{Type: shipper.PickAll}}
		r.Name, r.Annotations[shipper.ReleaseGenerationAnnotation] = fmt.Sprint("web-", i), fmt.Sprint(i)
	}
	old.Spec.TargetWave = ptr.To[int32](1)
	completes(old)
	for _, complete := range []bool{false, true} {
		var want []clustersChange
		if complete {
			want = []clustersChange{{index: 1, clusters: []string{"a", "b"}}}
			newest = newest.DeepCopy()
			newest.Spec.TargetWave = ptr.To[int32](1)
			completes(newest)
		}
		s := observedReleases(scheduledRelease(old), scheduledRelease(newest))
		s.clusters = []shipper.Cluster{joinedCluster("a"), joinedCluster("b")}
		p := planReleases(s, at).clusters
		if diff := cmp.Diff(want, p.changes, cmp.AllowUnexported(clustersChange{})); diff != "" {
			t.Errorf("complete: %t (-want +got):\n%s", complete, diff)
		}
		if complete && p.assigned[1]["b"] != 1 {
			t.Errorf("its wave is %v", p.assigned)
		}
	}
}

// completes says that a Release has all that its last step wants.
func completes(r *shipper.Release) {
	at := position.Of(r)
	r.Status.AchievedStep = &shipper.AchievedStep{Wave: at.Wave, Step: at.Step}
	r.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseComplete, Status: "True"}}
}

// scheduledRelease has targets that list its clusters.
func scheduledRelease(r *shipper.Release) strategy.Release {
	out := strategy.Release{
		Release: r, Installation: &shipper.InstallationTarget{}, Capacity: &shipper.CapacityTarget{}, Traffic: &shipper.TrafficTarget{},
	}
	out.Installation.Spec.Clusters = stamp.Clusters(r)
	return out
}

func TestABlockOfOneClusterStopsNoOtherOfARelease(t *testing.T) {
	newest := wavedRelease("a,b", "a=0,b=0", nil)
	steps := &newest.Spec.Environment.Strategy.Steps
	*steps = append(*steps, (*steps)[0])
	b := &shipper.RolloutBlock{}
	b.Namespace, b.Name = newest.Namespace, "freeze"
	b.Spec.Scope = &shipper.RolloutBlockScope{Clusters: []string{"a"}}
	s := observedReleases(scheduledRelease(newest))
	s.blocks = []*shipper.RolloutBlock{b}
	p := planReleases(s, at)
	says := "rollouts blocked by: " + newest.Namespace + "/freeze"
	if diff := cmp.Diff(block.Clusters{"a": says}, p.blockedIn); diff != "" || p.blocked != "" {
		t.Errorf("all of it: %q; (-want +got):\n%s", p.blocked, diff)
	}
	c := releaseBlocked(s, releasesDone{}, s.view(at).OfRelease(newest), newest)
	if c.Status != "True" || c.Reason != shipper.RolloutsBlocked || c.Message != says+"; only in clusters a" {
		t.Errorf("%+v", c)
	}
	up, back, abort := s.view(at).OfMoves(newest)
	if up != "" || back != "" || abort != says {
		t.Errorf("up %q, back %q, abort %q", up, back, abort)
	}
	b.Spec.Scope.Clusters = []string{"a", "b"}
	if up, back, _ = s.view(at).OfMoves(newest); up != says || back != says {
		t.Errorf("all its clusters: up %q, back %q", up, back)
	}
}
