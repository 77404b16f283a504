// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// spreads adds constraints to PickN.
func spreads(p shipper.Placement, constraints ...shipper.TopologySpreadConstraint) shipper.Placement {
	p.TopologySpreadConstraints = constraints
	return p
}

func over(key string, maxSkew int32) shipper.TopologySpreadConstraint {
	return shipper.TopologySpreadConstraint{TopologyKey: key, MaxSkew: maxSkew}
}

func softly(c shipper.TopologySpreadConstraint) shipper.TopologySpreadConstraint {
	c.WhenUnsatisfiable = shipper.ScheduleAnyway
	return c
}

// scored gives a verdict its scores.
func scored(v placement.Verdict, affinity, spread int32) placement.Verdict {
	v.Affinity, v.Spread = affinity, spread
	return v
}

func TestSpread(t *testing.T) {
	const region = shipper.RegionLabel
	name := func(weight int32, names ...string) shipper.PreferredClusterTerm {
		return shipper.PreferredClusterTerm{Weight: weight, ClusterTerm: shipper.ClusterTerm{Names: names}}
	}
	outranked := func(name string, count string) placement.Verdict {
		return rejected(name, shipper.PlacementOutranked, "placement.count is "+count+", and others are chosen before it: "+
			"raise it, or prefer this cluster in placement.affinity")
	}
	violates := func(name, domain, more, skew string) placement.Verdict {
		return rejected(name, shipper.PlacementSpreadViolated, `shipper.booking.com/region "`+domain+`" would have `+more+
			" more clusters than another, and maxSkew is "+skew+": raise it, or let more clusters fit elsewhere")
	}
	euEuUs := []shipper.Cluster{member("eu-1", "eu"), member("eu-2", "eu"), member("us-1", "us")}
	preferEU := func(count int32) shipper.Placement { return prefers(pickN(count), name(100, "eu-1"), name(50, "eu-2")) }
	for sentence, tc := range map[string]struct {
		in     placement.Input
		wanted int
		want   []placement.Verdict
	}{
		"the first pick raises the skew, the second lowers it, whatever the affinity": {
			input(spreads(preferEU(2), over(region, 1)), euEuUs...), 2,
			[]placement.Verdict{scored(picked("eu-1"), 100, -1), scored(outranked("eu-2", "2"), 50, -1), scored(picked("us-1"), 0, 1)},
		},
		"no cluster exceeds maxSkew, which is 1 when absent": {
			input(spreads(preferEU(3), over(region, 0)), append(euEuUs, member("eu-3", "eu"))...), 3,
			[]placement.Verdict{scored(picked("eu-1"), 100, -1), scored(picked("eu-2"), 50, -1), outranked("eu-3", "3"),
				scored(picked("us-1"), 0, 1)},
		},
		"a search that ends early names the constraint": {
			input(spreads(preferEU(4), over(region, 1)), append(euEuUs, member("eu-3", "eu"))...), 4,
			[]placement.Verdict{scored(picked("eu-1"), 100, -1), scored(picked("eu-2"), 50, -1), violates("eu-3", "eu", "2", "1"),
				scored(picked("us-1"), 0, 1)},
		},
		"ScheduleAnyway takes the cluster with a score of -1000": {
			input(spreads(preferEU(4), softly(over(region, 1))), append(euEuUs, member("eu-3", "eu"))...), 4,
			[]placement.Verdict{scored(picked("eu-1"), 100, -1), scored(picked("eu-2"), 50, -1), scored(picked("eu-3"), 0, -1000),
				scored(picked("us-1"), 0, 1)},
		},
		"a pick in the middle leaves the skew": {
			input(spreads(prefers(pickN(3), name(100, "a-1", "a-2"), name(50, "b-1")), over(region, 2)),
				member("a-1", "a"), member("a-2", "a"), member("b-1", "b"), member("c-1", "c"), member("d-1", "d", unjoined)), 3,
			[]placement.Verdict{scored(picked("a-1"), 100, -1), scored(outranked("a-2", "3"), 100, -1), scored(picked("b-1"), 50, 0),
				scored(picked("c-1"), 0, 1),
				rejected("d-1", shipper.PlacementNotJoined, "it has never been ready: Shipper has yet to connect to it; "+
					"run shipperctl clusters check d-1")},
		},
		"one value for all changes nothing": {
			input(spreads(pickN(2), over(region, 1)), member("a", "eu"), member("b", "eu")), 2,
			[]placement.Verdict{picked("a"), picked("b")},
		},
		"kept clusters count": {
			after(input(spreads(preferEU(2), over(region, 1)), euEuUs...), true, "eu-1"), 2,
			[]placement.Verdict{kept("eu-1"), scored(outranked("eu-2", "2"), 50, -1), scored(picked("us-1"), 0, 1)},
		},
		"a region can catch up although kept clusters exceed maxSkew": {
			after(input(spreads(pickN(5), over(region, 1)), append(euEuUs, member("eu-3", "eu"))...), true, "eu-1", "eu-2", "eu-3"), 5,
			[]placement.Verdict{kept("eu-1"), kept("eu-2"), kept("eu-3"), scored(picked("us-1"), 0, 1)},
		},
		"a region of which all clusters are tainted counts, as for Pods": {
			input(spreads(preferEU(2), over(region, 1)), euEuUs[0], euEuUs[1], member("us-1", "us", taint("gpu", "yes"))), 2,
			[]placement.Verdict{scored(picked("eu-1"), 100, -1), scored(violates("eu-2", "eu", "2", "1"), 50, 0),
				rejected("us-1", shipper.PlacementTainted, "tainted gpu=yes:NoSchedule: tolerate it in placement.tolerations")},
		},
		"a region outside of the required affinity does not count": {
			func() placement.Input {
				p := spreads(preferEU(2), over(region, 1))
				p.Affinity.Required = []shipper.ClusterTerm{withLabel(region, "eu")}
				return input(p, euEuUs...)
			}(), 2,
			[]placement.Verdict{scored(picked("eu-1"), 100, 0), scored(picked("eu-2"), 50, 0), rejected("us-1",
				shipper.PlacementAffinityNotMet, `label shipper.booking.com/region is "us", wanted shipper.booking.com/region in (eu)`)},
		},
		"the scores of two constraints are added": {
			input(spreads(preferEU(2), over(region, 1), softly(over("zone", 1))), member("eu-1", "eu", label("zone", "a")),
				member("eu-2", "eu", label("zone", "b")), member("us-1", "us", label("zone", "a")), member("us-2", "us", label("zone", "b"))), 2,
			[]placement.Verdict{scored(picked("eu-1"), 100, -2), scored(outranked("eu-2", "2"), 50, -2),
				scored(outranked("us-1", "2"), 0, -2), scored(picked("us-2"), 0, 2)},
		},
		"a cluster without the label may be chosen and counts nowhere": {
			input(spreads(prefers(pickN(2), name(9, "x")), over("zone", 1)),
				member("a", "r", label("zone", "a")), member("b", "r", label("zone", "b")), member("x", "r")), 2,
			[]placement.Verdict{scored(picked("a"), 0, -1), scored(outranked("b", "2"), 0, 1), scored(picked("x"), 9, 0)},
		},
	} {
		t.Run(sentence, func(t *testing.T) { wantVerdicts(t, tc.in, tc.wanted, tc.want...) })
	}
}

func TestSpreadBearsOnPickNOnly(t *testing.T) {
	in := input(spreads(all(), over(shipper.RegionLabel, 1)), member("a", "eu"), member("b", "eu"), member("c", "us"))
	if diff := cmp.Diff([]string{"a", "b", "c"}, placement.Decide(in).Chosen); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
