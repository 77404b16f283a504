// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// chosen is status.placement with these clusters of as many as are wanted.
func chosen(wanted int32, clusters ...shipper.ChosenCluster) *shipper.ReleasePlacement {
	return &shipper.ReleasePlacement{Wanted: wanted, Chosen: int32(len(clusters)), Clusters: clusters}
}

func TestStatusSaysWhyAReleaseHasItsClusters(t *testing.T) {
	scored := shipper.ChosenCluster{Name: "a", Reason: shipper.PlacementPicked, AffinityScore: 9}
	picked := func(name string) shipper.ChosenCluster {
		return shipper.ChosenCluster{Name: name, Reason: shipper.PlacementPicked}
	}
	kept := func(name string) shipper.ChosenCluster {
		return shipper.ChosenCluster{Name: name, Reason: shipper.PlacementKept}
	}
	with := func(rel strategy.Release, p *shipper.ReleasePlacement) strategy.Release {
		rel.Release.Status.Placement = p
		return rel
	}
	a, b, c := clusterNamed("a"), clusterNamed("b"), clusterNamed("c")
	type rels = []strategy.Release
	for sentence, tc := range map[string]struct {
		rels     rels
		clusters []shipper.Cluster
		change   func(*scope)
		done     releasesDone
		want     *shipper.ReleasePlacement
	}{
		"clusters were picked for it": {
			rels{unplacedRelease(0, pickTwo)}, []shipper.Cluster{a, b}, nil, releasesDone{placed: true}, chosen(2, picked("a"), picked("b")),
		},
		"the Release before had one of them": {
			rels{servingRelease(0, pickAll, "b"), unplacedRelease(1, pickTwo)}, []shipper.Cluster{a, b}, nil, releasesDone{placed: true},
			chosen(2, picked("a"), kept("b")),
		},
		"the clusters could not be written": {
			rels{unplacedRelease(0, pickTwo)}, []shipper.Cluster{a, b}, nil, releasesDone{rollout: errors.New("no")}, nil,
		},
		"the process ended before the status was written": {
			rels{servingRelease(0, pickAll, "b"), servingRelease(1, pickTwo, "a,b")}, []shipper.Cluster{a, b}, nil, releasesDone{},
			chosen(2, picked("a"), kept("b")),
		},
		"another cluster joins, and what was said stays": {
			rels{with(servingRelease(0, pickAll, "a,b"), chosen(2, scored, kept("b")))}, []shipper.Cluster{a, b, c}, nil,
			releasesDone{placed: true}, chosen(3, scored, kept("b"), picked("c")),
		},
		"another cluster joins, and cannot be written": {
			rels{with(servingRelease(0, pickAll, "a,b"), chosen(2, scored, kept("b")))}, []shipper.Cluster{a, b, c}, nil,
			releasesDone{rollout: errors.New("no")}, chosen(2, scored, kept("b")),
		},
		"another cluster joins while a block holds the rollout": {
			rels{with(servingRelease(0, pickAll, "a,b"), chosen(2, scored, kept("b")))}, []shipper.Cluster{a, b, c}, func(s *scope) {
				s.blocks = []*shipper.RolloutBlock{{}}
				s.blocks[0].Namespace = "default"
			}, releasesDone{}, chosen(2, scored, kept("b")),
		},
		"no cluster matters": {
			rels{with(servingRelease(0, pickTwo, "a,b"), chosen(2, scored, kept("b")))}, nil, func(s *scope) { s.clusters = nil },
			releasesDone{}, chosen(2, scored, kept("b")),
		},
		"clusters are rejected": {
			rels{with(servingRelease(0, pickAll, "a"), chosen(1, scored))}, []shipper.Cluster{a, clusterNamed("t", tainted)}, nil, releasesDone{},
			&shipper.ReleasePlacement{Wanted: 1, Chosen: 1, Clusters: []shipper.ChosenCluster{scored}, Rejected: []shipper.RejectedClusters{{
				Reason: shipper.PlacementTainted, Count: 1, Examples: []string{"t"},
				Message: "tainted gpu:NoSchedule: tolerate it in placement.tolerations",
			}}},
		},
		"it has regions": {rels{servingRelease(0, nil, "a")}, []shipper.Cluster{a}, nil, releasesDone{}, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := observedReleases(tc.rels...)
			if s.clusters = tc.clusters; s.clusters == nil {
				s.clusters = []shipper.Cluster{}
			}
			if tc.change != nil {
				tc.change(s)
			}
			p := planReleases(s, at)
			got := releaseStatus(s, p, tc.done, len(tc.rels)-1, at).Placement
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAReleaseWithFewerClustersThanWantedSaysSoAndGoesOn(t *testing.T) {
	said := func(rel strategy.Release, clusters ...shipper.Cluster) (string, shipper.ReleaseStatus) {
		s := observedReleases(rel)
		s.clusters = clusters
		status := releaseStatus(s, planReleases(s, at), releasesDone{}, 0, at)
		c := shipper.FindCondition(status.Conditions, shipper.ReleaseScheduled)
		return string(c.Status) + " " + c.Reason + " " + c.Message, status
	}
	a, far := clusterNamed("a"), clusterNamed("t", tainted)
	got, status := said(servingRelease(0, pickTwo, "a"), a, far)
	want := "False PlacementUnfulfilled 1 of 2 clusters: t: tainted gpu:NoSchedule: tolerate it in placement.tolerations"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !shipper.ConditionTrue(status.Conditions, shipper.ReleaseComplete) || status.Summary.Waiting != "" {
		t.Errorf("it is not complete, or waits for %q", status.Summary.Waiting)
	}
	if got, _ := said(servingRelease(0, pickTwo, "a,b"), a, clusterNamed("b")); got != "True  " {
		t.Errorf("with as many as are wanted: got %q", got)
	}
	if got, status := said(unplacedRelease(0, pickTwo), far); status.Summary.Waiting != shipper.ReleaseScheduled {
		t.Errorf("without any, it waits for %q and says %q", status.Summary.Waiting, got)
	}
}

// TestWhatIsSaidOfOtherClustersMayLag: each change of a cluster would be a write to each Release otherwise.
func TestWhatIsSaidOfOtherClustersMayLag(t *testing.T) {
	was := shipper.ReleaseStatus{
		ObservedGeneration: 2, Placement: chosen(2, shipper.ChosenCluster{Name: "a"}), Summary: &shipper.ReleaseSummary{},
		Conditions: []shipper.Condition{
			{Type: shipper.ReleaseScheduled, Status: "False", Reason: shipper.PlacementUnfulfilled, Message: "1 of 2"},
			{Type: shipper.ReleaseStrategyExecuted, Status: "True"},
		},
	}
	for sentence, tc := range map[string]struct {
		change func(*shipper.ReleaseStatus)
		want   bool
	}{
		"another cluster is rejected": {func(s *shipper.ReleaseStatus) {
			s.Placement.Rejected = []shipper.RejectedClusters{{Reason: shipper.PlacementTainted, Count: 1}}
			s.Conditions[0].Message = "1 of 2: t is tainted"
		}, false},
		"another cluster is chosen":   {func(s *shipper.ReleaseStatus) { s.Placement.Chosen++ }, false},
		"all wanted are found":        {func(s *shipper.ReleaseStatus) { s.Conditions[0].Status, s.Conditions[0].Reason = "True", "" }, true},
		"another reason":              {func(s *shipper.ReleaseStatus) { s.Conditions[0].Reason = shipper.TargetsFailed }, true},
		"another step begins as well": {func(s *shipper.ReleaseStatus) { s.Placement.Chosen, s.ObservedGeneration = 2, 3 }, true},
	} {
		is := *was.DeepCopy()
		tc.change(&is)
		if got := statusTurned(was, is); got != tc.want {
			t.Errorf("%s: turned is %t", sentence, got)
		}
	}
}

func TestSearchingReleasesAreWokenByClusters(t *testing.T) {
	with := func(p *shipper.Placement, clusters string, is *shipper.ReleasePlacement) *shipper.Release {
		rel := servingRelease(0, p, clusters).Release
		rel.Status.Placement = is
		return rel
	}
	two := &shipper.ReleasePlacement{Wanted: 2, Chosen: 2}
	for sentence, tc := range map[string]struct {
		rel  *shipper.Release
		want bool
	}{
		"PickAll":                       {with(pickAll, "a,b", two), true},
		"PickN that is filled":          {with(pickTwo, "a,b", two), false},
		"PickN that is not":             {with(pickTwo, "a", &shipper.ReleasePlacement{Wanted: 2, Chosen: 1}), true},
		"PickN whose cluster was taken": {with(pickTwo, "a", two), true},
		"PickN whose only cluster leaves with no replacement": {
			with(&shipper.Placement{Type: shipper.PickN, Count: ptr.To[int32](1)}, "a", &shipper.ReleasePlacement{Wanted: 1}), true,
		},
		"PickN without a status":       {with(pickTwo, "a,b", nil), true},
		"PickFixed that has all":       {with(pickFixed("a", "b"), "a,b", two), false},
		"PickFixed that lacks one":     {with(pickFixed("a", "b"), "a", two), true},
		"regions":                      {with(nil, "a", nil), false},
		"regions without clusters yet": {releaseAt(0, ""), true},
	} {
		if got := len(isUnplaced(tc.rel)) > 0; got != tc.want {
			t.Errorf("%s: got %t", sentence, got)
		}
	}
}

func TestPropertiesOfClustersWakeOnlyPlacementsThatNameThem(t *testing.T) {
	required := func(terms ...shipper.ClusterTerm) *shipper.Placement {
		return &shipper.Placement{Affinity: &shipper.ClusterAffinity{Required: terms}}
	}
	preferred := func(term shipper.PreferredClusterTerm) *shipper.Placement {
		return &shipper.Placement{Affinity: &shipper.ClusterAffinity{Preferred: []shipper.PreferredClusterTerm{term}}}
	}
	selector, names := &metav1.LabelSelector{}, shipper.ClusterTerm{Names: []string{"a"}}
	property := shipper.ClusterTerm{Properties: []shipper.PropertyRequirement{{Name: "nodes"}}}
	for sentence, tc := range map[string]struct {
		placement *shipper.Placement
		want      []string
	}{
		"regions":                 {nil, []string{yes}},
		"all clusters":            {pickAll, []string{yes}},
		"names":                   {required(names), []string{yes}},
		"a preference for a name": {preferred(shipper.PreferredClusterTerm{ClusterTerm: names}), []string{yes}},
		"labels":                  {required(names, shipper.ClusterTerm{LabelSelector: selector}), []string{yes, byProperties}},
		"properties":              {required(property), []string{yes, byProperties}},
		"preferred properties":    {preferred(shipper.PreferredClusterTerm{ClusterTerm: property}), []string{yes, byProperties}},
		"an order":                {preferred(shipper.PreferredClusterTerm{Sort: &shipper.PropertySort{}}), []string{yes, byProperties}},
		"a spread over a label": {
			&shipper.Placement{TopologySpreadConstraints: []shipper.TopologySpreadConstraint{{TopologyKey: "zone"}}}, []string{yes, byProperties},
		},
	} {
		if diff := cmp.Diff(tc.want, isUnplaced(unplacedRelease(0, tc.placement).Release)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", sentence, diff)
		}
	}
	filled := servingRelease(0, &shipper.Placement{
		Type: shipper.PickN, Count: ptr.To[int32](1), Affinity: required(property).Affinity,
	}, "a").Release
	filled.Status.Placement = &shipper.ReleasePlacement{Wanted: 1, Chosen: 1}
	if keys := isUnplaced(filled); keys != nil {
		t.Errorf("a placement that has all its clusters has the keys %q", keys)
	}
}
