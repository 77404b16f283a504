// SPDX-License-Identifier: Apache-2.0

package waves_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestFailuresAreThoseOfARolloutThatIsUnderWay(t *testing.T) {
	type outcome struct {
		Is       waves.Failures
		Lacks    []string
		Measured []string
	}
	caughtUp := shipper.RecoveringCluster{Name: "b", CaughtUp: true}
	recovering := shipper.RecoveringCluster{Name: "d"}
	for sentence, tc := range map[string]struct {
		status shipper.ReleaseStatus
		want   outcome
	}{
		"none": {want: outcome{Measured: []string{"c", "d", "e"}}},
		"some count, some recover, one of an earlier wave has caught up": {
			status: shipper.ReleaseStatus{FailedClusters: []string{"c"}, RecoveringClusters: []shipper.RecoveringCluster{caughtUp, recovering}},
			want: outcome{
				waves.Failures{Counted: []string{"c"}, Recovering: []shipper.RecoveringCluster{caughtUp, recovering}}, []string{"c", "d"},
				[]string{"b", "e"},
			},
		},
		"clusters that the Release has no more are none": {
			status: shipper.ReleaseStatus{
				FailedClusters: []string{"c", "gone"}, RecoveringClusters: []shipper.RecoveringCluster{{Name: "left", CaughtUp: true}},
			},
			want: outcome{waves.Failures{Counted: []string{"c"}}, []string{"c"}, []string{"d", "e"}},
		},
		"a cluster that is in both counts": {
			status: shipper.ReleaseStatus{FailedClusters: []string{"d"}, RecoveringClusters: []shipper.RecoveringCluster{recovering}},
			want:   outcome{waves.Failures{Counted: []string{"d"}}, []string{"d"}, []string{"c", "e"}},
		},
		"a complete Release has none": {
			status: shipper.ReleaseStatus{
				FailedClusters: []string{"c"}, Conditions: []shipper.Condition{{Type: shipper.ReleaseComplete, Status: "True"}},
			},
			want: outcome{Measured: []string{"c", "d", "e"}},
		},
	} {
		rel := &shipper.Release{Status: tc.status}
		rel.Annotations = map[string]string{
			shipper.ReleaseClustersAnnotation: "a,b,c,d,e", shipper.ReleaseWavesAnnotation: "a=0,b=0,c=1,d=1,e=1",
		}
		rel.Spec.TargetWave = new(int32(1))
		rel.Spec.Environment.Strategy = &shipper.RolloutStrategy{
			Steps: []shipper.RolloutStrategyStep{{}}, Waves: []shipper.Wave{{Name: "canary"}, {Name: "production"}},
		}
		got := outcome{Is: waves.FailedIn(rel), Measured: waves.Measured(rel, stamp.Clusters(rel))}
		for _, cluster := range stamp.Clusters(rel) {
			if got.Is.Lacks(cluster) {
				got.Lacks = append(got.Lacks, cluster)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}

func TestARecoveredClusterBeginsInItsTurn(t *testing.T) {
	s := &shipper.RolloutStrategy{Waves: []shipper.Wave{{Name: "canary"}, {Name: "prod"}}}
	for sentence, tc := range map[string]struct {
		clusters []waves.Cluster
		want     []string
	}{
		"one at a time, and the next wave begins beside it": {
			[]waves.Cluster{
				{Name: "a", State: waves.Recovered}, {Name: "b", State: waves.Recovered}, {Name: "c", State: waves.Recovered},
				{Name: "d", Wave: 1, State: waves.Recovered}, {Name: "e", Wave: 1, State: waves.Waiting},
			},
			[]string{"a", "d"},
		},
		"none beside one that moves": {
			[]waves.Cluster{{Name: "a", State: waves.Moving}, {Name: "b", State: waves.Recovered}}, nil,
		},
		"nor beside one that is not ready": {
			[]waves.Cluster{{Name: "a", State: waves.Recovered}, {Name: "b", State: waves.Unready}}, []string{"b"},
		},
		"nor while too many of the wave before lack something": {
			[]waves.Cluster{
				{Name: "a", State: waves.Moving}, {Name: "b", State: waves.Unready}, {Name: "c", Wave: 1, State: waves.Recovered},
			}, nil,
		},
		"without an earlier Release, at once": {
			[]waves.Cluster{{Name: "a", State: waves.Moving}, {Name: "b", State: waves.Recovered, Unbounded: true}}, []string{"b"},
		},
	} {
		if diff := cmp.Diff(tc.want, waves.Begin(s, tc.clusters)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}
