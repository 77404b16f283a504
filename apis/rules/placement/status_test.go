// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestTheStatusGroupsRejectedClustersByReason(t *testing.T) {
	var clusters []shipper.Cluster
	var tainted []string
	for i := range 12 {
		tainted = append(tainted, fmt.Sprintf("t-%02d", i))
		clusters = append(clusters, member(tainted[i], "r", taint("gpu", fmt.Sprint(i))))
	}
	clusters = append(clusters, member("b", "r", label("best", "yes")), member("a", "r", unschedulable), member("c", "r"))
	p := prefers(pickN(3), shipper.PreferredClusterTerm{Weight: 7, ClusterTerm: withLabel("best", "yes")})
	want := &shipper.ReleasePlacement{
		Wanted: 3, Chosen: 2,
		Clusters: []shipper.ChosenCluster{
			{Name: "b", Reason: shipper.PlacementPicked, AffinityScore: 7}, {Name: "c", Reason: shipper.PlacementKept},
		},
		Rejected: []shipper.RejectedClusters{
			{Reason: shipper.PlacementTainted, Count: 12, Examples: tainted[:10],
				Message: "tainted gpu=0:NoSchedule: tolerate it in placement.tolerations"},
			{Reason: shipper.PlacementUnschedulable, Count: 1, Examples: []string{"a"},
				Message: "spec.scheduler.unschedulable of the Cluster is true: set it to false"},
		},
	}
	if diff := cmp.Diff(want, placement.Decide(after(input(p, clusters...), true, "c")).Status()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheStatusHoldsAThousandClusters(t *testing.T) {
	var clusters []shipper.Cluster
	for i := range 1100 {
		clusters = append(clusters, member(fmt.Sprintf("cluster-%s-%04d", strings.Repeat("x", 40), i), "r"))
	}
	status := placement.Decide(input(all(), clusters...)).Status()
	if len(status.Clusters) != 1000 || status.Chosen != 1100 || status.Wanted != 1100 {
		t.Errorf("got %d clusters, chosen %d, wanted %d", len(status.Clusters), status.Chosen, status.Wanted)
	}
	text, err := json.Marshal(status)
	if err != nil || len(text) > 120*1000 {
		t.Errorf("%d bytes: %v", len(text), err)
	}
}

func TestUnfulfilledNamesFiveClustersAndCountsTheRest(t *testing.T) {
	var clusters []shipper.Cluster
	for i := range 4 {
		clusters = append(clusters, member(fmt.Sprintf("a-%d", i), "us"), member(fmt.Sprintf("t-%d", i), "eu", taint("gpu", "yes")),
			member(fmt.Sprintf("u-%d", i), "eu", unschedulable))
	}
	p := requires(pickN(9), withLabel(shipper.RegionLabel, "eu"))
	const gpu = "tainted gpu=yes:NoSchedule: tolerate it in placement.tolerations"
	want := "1 of 9 clusters: t-0: " + gpu + "; t-1: " + gpu + "; t-2: " + gpu + "; t-3: " + gpu +
		"; u-0: spec.scheduler.unschedulable of the Cluster is true: set it to false; 7 more: 4 AffinityNotMet, 3 Unschedulable"
	if got := placement.Decide(input(p, append(clusters, member("z", "eu"))...)).Unfulfilled(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for sentence, tc := range map[string]struct {
		in   placement.Input
		want string
	}{
		"enough":      {input(pickN(1), member("a", "r"), member("b", "r", unschedulable)), ""},
		"no clusters": {input(pickN(2)), "0 of 2 clusters: there are no others"},
		"all of none": {input(all()), "0 of 1 clusters: there are no others"},
		"not named": {input(fixed("a", "b"), member("a", "r"), member("c", "r")),
			`1 of 2 clusters: b: there is no Cluster "b": it is chosen when it joins`},
	} {
		if got := placement.Decide(tc.in).Unfulfilled(); got != tc.want {
			t.Errorf("%s: got %q, want %q", sentence, got, tc.want)
		}
	}
}

func TestMessagesAreBounded(t *testing.T) {
	long := strings.Repeat("é", 1000)
	clusters := []shipper.Cluster{
		member("a", "r", taint(long, long), taint(long+"2", long), taint(long+"3", long), taint(long+"4", long)),
		member("b", "r", declares("p", long)), member("c", "r", label(long, long)),
		cluster("d", "r", func(c *shipper.Cluster) {
			c.Status.Conditions = []shipper.Condition{{Type: shipper.ClusterReady, Message: long}}
		}),
	}
	p := requires(all(), shipper.ClusterTerm{
		LabelSelector: withLabel("x", long[:60]).LabelSelector, Properties: where("p", shipper.PropertyGe, "1").Properties,
	})
	in := input(p, clusters...)
	in.Requirements.Capabilities = nil
	for _, v := range placement.Decide(in).Verdicts {
		if v.Chosen || len(v.Message) > 512 || !slices.Equal([]rune(v.Message), []rune(strings.ToValidUTF8(v.Message, ""))) {
			t.Errorf("%s: %d bytes: %s", v.Cluster, len(v.Message), v.Message)
		}
	}
}
