// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestRankIsAffinityThenPresenceThenPreferenceThenName(t *testing.T) {
	const hash = "cluster-1" // ahead of cluster-2, cluster-0 and cluster-3
	clusters := func() []shipper.Cluster {
		out := in("r", "r", "r", "r")
		for i := range out {
			healthy(&out[i])
		}
		return out
	}
	one := func(in placement.Input) string { return fmt.Sprint(placement.Decide(in).Chosen) }
	favour := func(name string, weight int32) shipper.PreferredClusterTerm {
		return shipper.PreferredClusterTerm{Weight: weight, ClusterTerm: shipper.ClusterTerm{Names: []string{name}}}
	}
	for sentence, tc := range map[string]struct{ got, want string }{
		"the hash decides between equals": {one(input(pickN(1), clusters()...)), hash},
		"weight bears on the hash":        {one(input(pickN(1), but(clusters(), 3, weight(90000))...)), "cluster-3"},
		"the name decides at the last": {
			one(input(pickN(1), but(but(clusters(), 2, identity(hash)), 0, identity(hash))...)), "cluster-0",
		},
		"the present one beats the hash": {one(after(input(pickN(1), clusters()...), false, "cluster-3")), "cluster-3"},
		"affinity beats the present one": {
			one(after(input(prefers(pickN(1), favour("cluster-0", 1)), clusters()...), false, "cluster-3")), "cluster-0",
		},
		"a negative weight puts a cluster last": {
			one(input(prefers(pickN(3), favour(hash, -1)), clusters()...)), "cluster-0 cluster-2 cluster-3",
		},
		"scores are added": {
			one(input(prefers(pickN(1), favour("cluster-0", 20), favour("cluster-0", -20), favour("cluster-3", 1)), clusters()...)),
			"cluster-3",
		},
	} {
		if want := "[" + tc.want + "]"; tc.got != want {
			t.Errorf("%s: got %s, want %s", sentence, tc.got, want)
		}
	}
}

func TestASorterGivesEachClusterAShareOfTheWeight(t *testing.T) {
	clusters := func(declared ...string) []shipper.Cluster {
		var out []shipper.Cluster
		for i, value := range declared {
			c := member(fmt.Sprintf("c%d", i), "r", label("env", "prod"))
			if value != "" {
				declares("size", value)(&c)
			}
			out = append(out, c)
		}
		return out
	}
	prod := withLabel("env", "prod")
	for sentence, tc := range map[string]struct {
		term     shipper.PreferredClusterTerm
		order    shipper.SortOrder
		clusters []shipper.Cluster
		want     []int32
	}{
		"the greatest first": {
			shipper.PreferredClusterTerm{Weight: 100}, shipper.SortDescending, clusters("100", "20", "10"), []int32{100, 11, 0},
		},
		"the least first": {
			shipper.PreferredClusterTerm{Weight: 100}, shipper.SortAscending, clusters("100", "20", "10"), []int32{0, 89, 100},
		},
		"a negative weight": {
			shipper.PreferredClusterTerm{Weight: -100}, shipper.SortDescending, clusters("100", "20", "10"), []int32{-100, -11, 0},
		},
		"all equal": {shipper.PreferredClusterTerm{Weight: 30}, shipper.SortAscending, clusters("1", "1000m"), []int32{30, 30}},
		"one without the property": {
			shipper.PreferredClusterTerm{Weight: 30}, shipper.SortDescending, clusters("1", "", "2"), []int32{0, 0, 30},
		},
		"one that cannot be compared": {
			shipper.PreferredClusterTerm{Weight: 30}, shipper.SortDescending, clusters("1", "lots", "2"), []int32{0, 0, 30},
		},
		"with a term that one does not match": {
			shipper.PreferredClusterTerm{Weight: 100, ClusterTerm: prod}, shipper.SortDescending,
			but(clusters("100", "20", "10"), 0, label("env", "dev")), []int32{0, 100, 0},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			tc.term.Sort = &shipper.PropertySort{Property: "size", Order: tc.order}
			d := placement.Decide(input(prefers(pickN(int32(len(tc.clusters))), tc.term), tc.clusters...))
			var got []int32
			for _, v := range d.Verdicts {
				got = append(got, v.Affinity)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Scenario 2 of the design: two of three clusters fit; the third is chosen when it has the label.
func TestPickNGoesOnLookingUntilEnoughClustersFit(t *testing.T) {
	p := requires(pickN(3), withLabel("env", "prod"))
	clusters := []shipper.Cluster{
		member("ap-1", "ap"), member("eu-1", "eu", label("env", "prod")), member("us-1", "us", label("env", "prod")),
	}
	d := placement.Decide(input(p, clusters...))
	if diff := cmp.Diff([]string{"eu-1", "us-1"}, d.Chosen); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got, want := d.Unfulfilled(), "2 of 3 clusters: ap-1: it has no label env, wanted env in (prod)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	label("env", "prod")(&clusters[0])
	d = placement.Decide(after(input(p, clusters...), true, d.Chosen...))
	if diff := cmp.Diff([]string{"ap-1", "eu-1", "us-1"}, d.Chosen); diff != "" || d.Unfulfilled() != "" {
		t.Errorf("%s -want +got:\n%s", d.Unfulfilled(), diff)
	}
}

// Scenario 4: a taint moves nothing and keeps new Applications off.
func TestATaintKeepsWhatIsPlacedAndTurnsAwayWhatIsNew(t *testing.T) {
	clusters := []shipper.Cluster{member("eu-1", "eu", taint("gpu", "yes")), member("us-1", "us")}
	gpu := rejected("eu-1", shipper.PlacementTainted, "tainted gpu=yes:NoSchedule: tolerate it in placement.tolerations")
	wantVerdicts(t, after(input(all(), clusters...), true, "eu-1", "us-1"), 2, kept("eu-1"), kept("us-1"))
	wantVerdicts(t, input(all(), clusters...), 1, gpu, picked("us-1"))
	clusters[0].Spec.Taints = nil
	wantVerdicts(t, after(input(all(), clusters...), true, "us-1"), 2, picked("eu-1"), kept("us-1"))
}

// Scenario 6: the clusters with the most nodes are the first.
func TestNodesAreSorted(t *testing.T) {
	p := prefers(pickN(2), shipper.PreferredClusterTerm{
		Weight: 100, Sort: &shipper.PropertySort{Property: "nodes", Order: shipper.SortDescending},
	})
	want := []placement.Verdict{picked("big"), picked("mid"), rejected("small", shipper.PlacementOutranked,
		"placement.count is 2, and others are chosen before it: raise it, or prefer this cluster in placement.affinity")}
	want[0].Affinity, want[1].Affinity = 100, 11
	wantVerdicts(t, input(p, member("big", "r", nodes(100)), member("mid", "r", nodes(20)), member("small", "r", nodes(10))), 2, want...)
}

// Scenario 7: no region has two clusters more than another.
func TestClustersAreSpreadOverRegions(t *testing.T) {
	region := shipper.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: shipper.RegionLabel, WhenUnsatisfiable: shipper.DoNotSchedule}
	p := pickN(4)
	p.TopologySpreadConstraints = []shipper.TopologySpreadConstraint{region}
	clusters := []shipper.Cluster{
		member("eu-1", "eu"), member("eu-2", "eu"), member("eu-3", "eu"), member("us-1", "us"), member("us-2", "us"),
	}
	d := placement.Decide(input(p, clusters...))
	counts := map[byte]int{}
	for _, name := range d.Chosen {
		counts[name[0]]++
	}
	if diff := cmp.Diff(map[byte]int{'e': 2, 'u': 2}, counts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	p.Count = new(int32(5))
	if d = placement.Decide(input(p, clusters...)); len(d.Chosen) != 5 { // 3 and 2
		t.Errorf("chose %v", d.Chosen)
	}
	p.TopologySpreadConstraints[0].TopologyKey = "zone" // no cluster has it
	if d = placement.Decide(input(p, clusters...)); len(d.Chosen) != 5 {
		t.Errorf("chose %v of the clusters without the label", d.Chosen)
	}
}
