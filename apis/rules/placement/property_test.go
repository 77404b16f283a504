// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// fleet makes clusters at random: of three regions and two zones, some of them tainted, lost, unschedulable, leaving or not joined.
func fleet(r *rand.Rand, n int) []shipper.Cluster {
	changes := []change{
		taint("gpu", "yes"), lost(time.Hour), lost(time.Minute), unschedulable, going, unjoined, offers("gpu"), nodes(7), nodes(3),
		label("zone", "a"), label("zone", "b"), label("env", "prod"), label("env", "dev"), declares("price", "9"), declares("price", "5m"),
		weight(7), weight(0), identity("same"), label(shipper.RegionLabel, "moon"),
	}
	out := make([]shipper.Cluster, n)
	for i := range out {
		out[i] = member(fmt.Sprintf("c-%03d", i), fmt.Sprintf("r%d", r.IntN(3)))
		for range r.IntN(4) {
			changes[r.IntN(len(changes))](&out[i])
		}
	}
	return out
}

// policies makes one of each type at random.
func policies(r *rand.Rand) []shipper.Placement {
	terms := []shipper.ClusterTerm{
		withLabel("env", "prod"), withLabel(shipper.RegionLabel, "r0", "r1"), where("nodes", shipper.PropertyGe, "5"),
		where("price", shipper.PropertyLt, "1"), {Names: []string{"c-001", "c-005"}},
	}
	some := func() (out []shipper.ClusterTerm) {
		for range r.IntN(3) {
			out = append(out, terms[r.IntN(len(terms))])
		}
		return out
	}
	n := requires(pickN(r.Int32N(6)), some()...)
	for _, term := range some() {
		p := shipper.PreferredClusterTerm{Weight: r.Int32N(201) - 100, ClusterTerm: term}
		if r.IntN(2) == 0 {
			p.Sort = &shipper.PropertySort{Property: "nodes", Order: shipper.SortDescending}
		}
		n.Affinity.Preferred = append(n.Affinity.Preferred, p)
	}
	for _, key := range []string{shipper.RegionLabel, "zone"} {
		switch c := over(key, 1+r.Int32N(2)); r.IntN(3) {
		case 0:
			n.TopologySpreadConstraints = append(n.TopologySpreadConstraints, c)
		case 1:
			n.TopologySpreadConstraints = append(n.TopologySpreadConstraints, softly(c))
		}
	}
	tolerant := tolerating(requires(all(), some()...), shipper.ClusterToleration{Operator: shipper.TolerationExists})
	return []shipper.Placement{requires(all(), some()...), tolerant, n, fixed("c-000", "c-003", "c-900", "c-007")}
}

// cases calls f for many inputs, with a cluster that is not among them.
func cases(t *testing.T, f func(in placement.Input, r *rand.Rand, extra shipper.Cluster)) {
	t.Helper()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		clusters := fleet(r, 1+r.IntN(20))
		extra := fleet(r, 1)[0]
		extra.Name = []string{"a", "zz", "c-900"}[r.IntN(3)]
		for _, p := range policies(r) {
			in := input(p, clusters...)
			for _, c := range clusters {
				if r.IntN(4) == 0 {
					in.Current = append(in.Current, c.Name)
				}
			}
			f(in, r, extra)
		}
	}
}

func TestTheOrderOfClustersDoesNotMatter(t *testing.T) {
	cases(t, func(in placement.Input, r *rand.Rand, _ shipper.Cluster) {
		in.Sticky = r.IntN(2) == 0
		want := placement.Decide(in)
		r.Shuffle(len(in.Clusters), func(i, j int) { in.Clusters[i], in.Clusters[j] = in.Clusters[j], in.Clusters[i] })
		r.Shuffle(len(in.Current), func(i, j int) { in.Current[i], in.Current[j] = in.Current[j], in.Current[i] })
		if diff := cmp.Diff(want, placement.Decide(in)); diff != "" {
			t.Fatalf("%+v -want +got:\n%s", in.Requirements.Placement, diff)
		}
	})
}

func TestClustersAreNotChanged(t *testing.T) {
	cases(t, func(in placement.Input, _ *rand.Rand, _ shipper.Cluster) {
		before := make([]shipper.Cluster, len(in.Clusters))
		for i := range in.Clusters {
			before[i] = *in.Clusters[i].DeepCopy()
		}
		placement.Decide(in)
		if diff := cmp.Diff(before, in.Clusters); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	})
}

func TestANewClusterMovesNothing(t *testing.T) {
	cases(t, func(in placement.Input, _ *rand.Rand, extra shipper.Cluster) {
		for _, sticky := range []bool{true, false} {
			if in.Requirements.Placement.Type == shipper.PickN && !sticky {
				continue // a changed policy judges all afresh
			}
			in := in
			in.Current = placement.Decide(in).Chosen
			in.Sticky = sticky
			in.Clusters = append(slices.Clone(in.Clusters), extra)
			after := placement.Decide(in).Chosen
			for _, name := range in.Current {
				if !slices.Contains(after, name) {
					t.Fatalf("%+v, sticky %t: %s was chosen and no longer is: %v", in.Requirements.Placement, sticky, name, after)
				}
			}
		}
	})
}

func TestADecisionIsStable(t *testing.T) {
	cases(t, func(in placement.Input, _ *rand.Rand, _ shipper.Cluster) {
		in.Current = nil
		first := placement.Decide(in).Chosen
		for _, sticky := range []bool{true, false} {
			again := placement.Decide(after(in, sticky, first...)).Chosen
			if diff := cmp.Diff(first, again); diff != "" {
				t.Fatalf("%+v, sticky %t: -want +got:\n%s", in.Requirements.Placement, sticky, diff)
			}
		}
	})
}

func TestDoNotScheduleBoundsTheSkew(t *testing.T) {
	cases(t, func(in placement.Input, _ *rand.Rand, _ shipper.Cluster) {
		in.Current = nil
		d := placement.Decide(in)
		for _, c := range in.Requirements.Placement.TopologySpreadConstraints {
			if c.WhenUnsatisfiable == shipper.ScheduleAnyway {
				continue
			}
			counts := map[string]int32{}
			for i := range d.Verdicts {
				v, of := d.Verdicts[i], in.Clusters[i]
				value, ok := of.Labels[c.TopologyKey]
				if c.TopologyKey == shipper.RegionLabel {
					value, ok = of.Spec.Region, true
				}
				if fits := v.Chosen || v.Reason == shipper.PlacementOutranked || v.Reason == shipper.PlacementSpreadViolated; !ok || !fits {
					continue
				}
				counts[value] += 0
				if v.Chosen {
					counts[value]++
				}
			}
			least, most := int32(1000), int32(0)
			for _, n := range counts {
				least, most = min(least, n), max(most, n)
			}
			if most-least > c.MaxSkew && len(counts) > 0 {
				t.Fatalf("%+v: %v", c, counts)
			}
		}
	})
}

func TestExplainAgreesWithChoose(t *testing.T) {
	cases(t, func(in placement.Input, r *rand.Rand, _ shipper.Cluster) {
		in.Requirements = wants(some("r0", r.Int32N(3)), some("r1", r.Int32N(3)))
		if r.IntN(3) == 0 {
			in.Requirements = capable(in.Requirements, "gpu")
		}
		want, err := placement.Choose(in.App, in.Requirements, in.Clusters)
		got := placement.Explain(in.App, in.Requirements, in.Clusters)
		if diff := cmp.Diff(want, got.Chosen); diff != "" && err == nil {
			t.Fatalf("-want +got:\n%s", diff)
		}
		if (err != nil) != (len(got.Chosen) < got.Wanted) {
			t.Fatalf("%v, and %d of %d are picked", err, len(got.Chosen), got.Wanted)
		}
	})
}
