// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestRegionsAreExplained(t *testing.T) {
	clusters := []shipper.Cluster{
		cluster("a-leaving", "eu", going, offers("gpu")), cluster("b-full", "eu", unschedulable),
		cluster("c-tainted", "eu", taint("gpu", "yes"), offers("gpu")), cluster("d-incapable", "eu"),
		cluster("e-heavy", "eu", offers("gpu"), weight(9000)), cluster("f", "eu", offers("gpu"), weight(0)),
		cluster("g", "us", offers("gpu")),
	}
	want := placement.Decision{Wanted: 1, Chosen: []string{"e-heavy"}, Verdicts: []placement.Verdict{
		rejected("a-leaving", shipper.PlacementLeaving, "the Cluster is being deleted"),
		rejected("b-full", shipper.PlacementUnschedulable, "spec.scheduler.unschedulable of the Cluster is true: set it to false"),
		rejected("c-tainted", shipper.PlacementTainted,
			"tainted gpu=yes:NoSchedule: regions tolerate no taint; use a placement with tolerations"),
		rejected("d-incapable", shipper.PlacementCapabilityMissing, "does not offer gpu: add it to spec.capabilities of the Cluster"),
		picked("e-heavy"),
		rejected("f", shipper.PlacementOutranked, `region "eu" wants 1, and others rank higher: raise its replicas`),
		rejected("g", shipper.PlacementNotNamed, `clusterRequirements.regions does not name its region "us"`),
	}}
	in := placement.Input{App: app, Requirements: capable(wants(one("eu")), "gpu"), Clusters: clusters}
	for range 2 {
		got, err := placement.Select(in)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v -want +got:\n%s", err, diff)
		}
		in.Clusters = reversed(in.Clusters)
	}
}

func TestRegionsWithTooFewClustersAreExplainedBesideTheError(t *testing.T) {
	in := placement.Input{App: app, Requirements: wants(some("eu", 2)), Clusters: []shipper.Cluster{
		cluster("a", "eu"), cluster("b", "eu", taint("gpu", "yes")),
	}}
	gpu := rejected("b", shipper.PlacementTainted,
		"tainted gpu=yes:NoSchedule: regions tolerate no taint; use a placement with tolerations")
	got, err := placement.Select(in)
	if diff := cmp.Diff(placement.Decision{Wanted: 2, Verdicts: []placement.Verdict{picked("a"), gpu}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want := &placement.Error{
		Reason: shipper.NotEnoughClustersInRegion, Message: `region "eu" has 1 of the 2 schedulable clusters wanted ` +
			`(tainted: 1; a placement can tolerate taints)`,
	}
	if diff := cmp.Diff(error(want), err); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSelectDecidesByThePlacement(t *testing.T) {
	in := input(pickN(1), member("a", "eu", taint("gpu", "yes")), member("b", "us"))
	got, err := placement.Select(in)
	if diff := cmp.Diff(placement.Decide(in), got); diff != "" || err != nil || len(got.Chosen) != 1 {
		t.Errorf("%v %v -want +got:\n%s", err, got.Chosen, diff)
	}
}

func TestClustersStayWhileTheRequirementsAreTheSame(t *testing.T) {
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{shipper.ReleaseClustersAnnotation: "b,a"}}}
	rel.Spec.Environment.ClusterRequirements.Placement = new(requires(pickN(2), withLabel("env", "prod")))
	env := rel.Spec.Environment.DeepCopy()
	type stay struct {
		Current []string
		Sticky  bool
	}
	of := func(rel *shipper.Release) stay {
		current, sticky := placement.Stay(rel, env)
		return stay{current, sticky}
	}
	got := []stay{of(nil), of(&shipper.Release{Spec: rel.Spec}), of(rel)}
	env.Chart.Version = "2.0.0"
	env.ClusterRequirements.Placement.Tolerations = []shipper.ClusterToleration{}
	got = append(got, of(rel))
	env.ClusterRequirements.Placement.Count = new(int32(3))
	got = append(got, of(rel))
	both := []string{"a", "b"}
	if diff := cmp.Diff([]stay{{}, {nil, true}, {both, true}, {both, true}, {both, false}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
