// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

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
	r.Spec.TargetWave = 1
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
