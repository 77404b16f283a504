// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// FuzzDecide decides by any placement over any clusters: it does not panic, chooses only clusters that fit or stay, and no more than
// are wanted; it has one verdict for each cluster.
func FuzzDecide(f *testing.F) {
	seed := func(p shipper.Placement, current string, sticky bool, clusters ...shipper.Cluster) {
		policy, err := json.Marshal(p)
		if err != nil {
			f.Fatal(err)
		}
		members, err := json.Marshal(clusters)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(policy), string(members), current, sticky)
	}
	some := []shipper.Cluster{
		member("a", "eu", nodes(3), taint("gpu", "yes"), label("zone", "1")), member("b", "eu", declares("price", "1e5")),
		member("c", "us", offers("gpu"), label("zone", "2")), member("d", "us", going), member("e", "ap", unjoined),
	}
	seed(tolerating(requires(all(), where("price", shipper.PropertyGe, "5m")), shipper.ClusterToleration{Key: "gpu"}), "a", true, some...)
	seed(spreads(prefers(pickN(3), shipper.PreferredClusterTerm{
		Weight: -7, ClusterTerm: withLabel("zone", "1"), Sort: &shipper.PropertySort{Property: "nodes", Order: shipper.SortAscending},
	}), over(shipper.RegionLabel, 1), softly(over("zone", 2))), "b", true, some...)
	seed(fixed("a", "d", "x"), "c", false, some...)
	f.Fuzz(func(t *testing.T, policy, members, current string, sticky bool) {
		var p shipper.Placement
		var clusters []shipper.Cluster
		if json.Unmarshal([]byte(policy), &p) != nil || json.Unmarshal([]byte(members), &clusters) != nil || len(clusters) > 50 {
			return
		}
		names := map[string]bool{}
		for i := range clusters {
			if names[clusters[i].Name] {
				return // the names of Clusters are unique
			}
			names[clusters[i].Name] = true
		}
		in := placement.Input{
			App: app, Requirements: shipper.ClusterRequirements{Placement: &p}, Clusters: clusters, Current: []string{current},
			Sticky: sticky, UnhealthyAfter: time.Minute, Now: noon,
		}
		d := placement.Decide(in)
		if len(d.Chosen) > d.Wanted || !slices.IsSorted(d.Chosen) {
			t.Fatalf("wanted %d, chose %v", d.Wanted, d.Chosen)
		}
		var chosen []string
		for _, v := range d.Verdicts {
			fits := v.Reason == shipper.PlacementPicked || v.Reason == shipper.PlacementKept && v.Cluster == current
			if v.Chosen != (fits && v.Message == "") || v.Reason == "" || v.Chosen && !names[v.Cluster] {
				t.Fatalf("%+v", v)
			}
			if v.Chosen {
				chosen = append(chosen, v.Cluster)
			}
			delete(names, v.Cluster)
		}
		if diff := cmp.Diff(chosen, d.Chosen); diff != "" || len(names) > 0 {
			t.Fatalf("without verdict: %v -want +got:\n%s", names, diff)
		}
		d.Status()
		d.Unfulfilled()
		placement.Validate(&p, nil)
		in.Clusters = reversed(clusters)
		if diff := cmp.Diff(d, placement.Decide(in)); diff != "" {
			t.Fatalf("in the reverse order: -want +got:\n%s", diff)
		}
	})
}
