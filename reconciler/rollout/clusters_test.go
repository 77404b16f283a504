// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"shipper.dev/shipper/apis/rules/placement"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// clusterNamed has joined, in region r.
func clusterNamed(name string, changes ...func(*shipper.Cluster)) shipper.Cluster {
	c := shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.Region = "r"
	c.Status.Conditions = []shipper.Condition{
		{Type: shipper.ClusterJoined, Status: "True"}, {Type: shipper.ClusterReady, Status: "True"},
	}
	for _, change := range changes {
		change(&c)
	}
	return c
}

func joinedNever(c *shipper.Cluster) { c.Status.Conditions = nil }
func tainted(c *shipper.Cluster)     { c.Spec.Taints = []shipper.ClusterTaint{{Key: "gpu"}} }
func deleted(c *shipper.Cluster)     { c.DeletionTimestamp = ptr.To(at) }
func removing(c *shipper.Cluster)    { deleted(c); c.Spec.OnLeave = shipper.OnLeaveRemove }
func inRegion(name string) func(*shipper.Cluster) {
	return func(c *shipper.Cluster) { c.Spec.Region = name }
}

var (
	pickAll = &shipper.Placement{}
	pickTwo = &shipper.Placement{Type: shipper.PickN, Count: ptr.To[int32](2)}
)

func pickFixed(names ...string) *shipper.Placement {
	return &shipper.Placement{Type: shipper.PickFixed, Clusters: names}
}

// unplacedRelease has no clusters yet.
func unplacedRelease(i int, p *shipper.Placement) strategy.Release {
	r := releaseAt(i, "")
	r.Spec.Environment.ClusterRequirements = shipper.ClusterRequirements{Placement: p}
	return strategy.Release{Release: r}
}

// servingRelease has completed and serves in its clusters, except in those that are named after an exclamation mark. With a nil
// placement it has region r.
func servingRelease(i int, p *shipper.Placement, clusters string) strategy.Release {
	var names, down []string
	for _, name := range strings.Split(clusters, ",") {
		if named, is := strings.CutPrefix(name, "!"); is {
			name, down = named, append(down, named)
		}
		names = append(names, name)
	}
	r := releaseAt(i, joined(names))
	if p != nil {
		r.Spec.Environment.ClusterRequirements = shipper.ClusterRequirements{Placement: p}
	}
	r.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseComplete, Status: "True"}}
	r.Status.AchievedStep = &shipper.AchievedStep{Name: "full on"}
	replicas := map[string]int32{}
	for _, name := range names {
		replicas[name] = 4
	}
	out := strategy.Release{
		Release: r, Installation: installationTarget(r, names, nil, true),
		Capacity: capacityTarget(r, names, replicas), Traffic: trafficTarget(r, names),
	}
	for i, name := range names {
		conditions := []shipper.Condition{{Type: shipper.TargetReady, Status: "True"}}
		if slices.Contains(down, name) {
			conditions = []shipper.Condition{{Type: shipper.TargetReady, Status: "Unknown"}}
		}
		out.Capacity.Spec.Clusters[i].Percent, out.Capacity.Spec.Clusters[i].AsFound = 100, false
		out.Traffic.Spec.Clusters[i].Weight, out.Traffic.Spec.Clusters[i].AsFound = 100, false
		out.Installation.Status.Clusters = append(out.Installation.Status.Clusters,
			shipper.ClusterInstallationStatus{Name: name, Conditions: conditions})
		out.Capacity.Status.Clusters = append(out.Capacity.Status.Clusters, shipper.ClusterCapacityStatus{Name: name, Conditions: conditions})
		out.Traffic.Status.Clusters = append(out.Traffic.Status.Clusters, shipper.ClusterTrafficStatus{Name: name, Conditions: conditions})
	}
	overall := []shipper.Condition{{Type: shipper.TargetReady, Status: "True"}}
	if len(down) > 0 {
		overall[0].Status = "False"
	}
	out.Installation.Status.Conditions, out.Capacity.Status.Conditions, out.Traffic.Status.Conditions = overall, overall, overall
	return out
}

// retiredRelease is one from which the newest has taken everything.
func retiredRelease(i int, p *shipper.Placement, clusters string) strategy.Release {
	out := servingRelease(i, p, clusters)
	out.Installation.Spec.CanOverride = false
	for i := range out.Capacity.Spec.Clusters {
		out.Capacity.Spec.Clusters[i].Percent, out.Traffic.Spec.Clusters[i].Weight = 0, 0
	}
	return out
}

// stagedRelease is at the first of two steps, which leaves everything to the incumbent, and has achieved it.
func stagedRelease(i int, p *shipper.Placement, clusters string) strategy.Release {
	out := servingRelease(i, p, clusters)
	steps := &out.Release.Spec.Environment.Strategy.Steps
	*steps = append([]shipper.RolloutStrategyStep{{
		Name:     "staging",
		Capacity: shipper.RolloutStrategyStepValue{Incumbent: 100}, Traffic: shipper.RolloutStrategyStepValue{Incumbent: 100},
	}}, *steps...)
	out.Release.Status.Conditions[0].Status = "False"
	for i := range out.Capacity.Spec.Clusters {
		out.Capacity.Spec.Clusters[i].Percent, out.Traffic.Spec.Clusters[i].Weight = 0, 0
	}
	return out
}

// firstTwo are the clusters that web prefers.
func firstTwo(names ...string) string {
	slices.SortFunc(names, func(x, y string) int {
		a, b := clusterNamed(x), clusterNamed(y)
		return cmp.Compare(placement.Score("web", &b), placement.Score("web", &a))
	})
	return joined(names[:2])
}

// describeClusters is a plan for clusters in words.
func describeClusters(s *scope, p clustersPlan) []string {
	var out []string
	if p.choice != nil {
		out = append(out, "choose "+strings.Join(p.choice, ","))
	}
	if p.refusal != nil {
		out = append(out, reasonOf(p.refusal)+": "+p.refusal.Error())
	}
	for _, c := range p.changes {
		out = append(out, s.history.Live[c.index].Release.Name+" to "+strings.Join(c.clusters, ","))
	}
	if p.held {
		out = append(out, "held")
	}
	return out
}

func TestClustersPlan(t *testing.T) {
	blocked := func(s *scope) {
		s.blocks = []*shipper.RolloutBlock{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}}
	}
	type rels = []strategy.Release
	type clusters = []shipper.Cluster
	a, b, c := clusterNamed("a"), clusterNamed("b"), clusterNamed("c")
	two := &shipper.RegionRequirement{Name: "r", Replicas: ptr.To[int32](2)}
	regional := func(rel strategy.Release) strategy.Release {
		rel.Release.Spec.Environment.ClusterRequirements.Regions = []shipper.RegionRequirement{*two}
		return rel
	}
	for sentence, tc := range map[string]struct {
		rels     rels
		clusters clusters
		change   func(*scope)
		want     []string
	}{
		"PickAll gets all that fit": {
			rels{unplacedRelease(0, pickAll)}, clusters{a, b, clusterNamed("t", tainted)}, nil, []string{"choose a,b"},
		},
		"PickN goes ahead with fewer": {
			rels{unplacedRelease(0, pickTwo)}, clusters{a, clusterNamed("new", joinedNever)}, nil, []string{"choose a"},
		},
		"PickFixed gets the named ones that there are": {
			rels{unplacedRelease(0, pickFixed("a", "later"))}, clusters{a, b}, nil, []string{"choose a"},
		},
		"nothing fits PickN": {
			rels{unplacedRelease(0, pickTwo)}, clusters{clusterNamed("new", joinedNever)}, nil,
			[]string{"PlacementUnfulfilled: 0 of 2 clusters: new: it has never been ready: Shipper has yet to connect to it; " +
				"run shipperctl clusters check new"},
		},
		"nothing fits PickAll": {
			rels{unplacedRelease(0, pickAll)}, nil, nil, []string{"PlacementUnfulfilled: 0 of 1 clusters: there are no others"},
		},
		"nothing is chosen while a block holds it": {rels{unplacedRelease(0, pickAll)}, clusters{a}, blocked, nil},
		"the clusters of the Release before are kept, whatever their taints": {
			rels{servingRelease(0, pickTwo, "a,b"), unplacedRelease(1, pickTwo)}, clusters{a, clusterNamed("b", tainted), c}, nil,
			[]string{"choose a,b"},
		},
		"a Release that never got clusters is passed over": {
			rels{servingRelease(0, pickTwo, "a,b"), unplacedRelease(1, pickTwo), unplacedRelease(2, pickTwo)},
			clusters{a, clusterNamed("b", tainted), c}, nil, []string{"choose a,b"},
		},
		"another policy judges afresh": {
			rels{servingRelease(0, pickAll, "a,b"), unplacedRelease(1, pickTwo)}, clusters{a, clusterNamed("b", tainted), c}, nil,
			[]string{"choose a,c"},
		},

		"a cluster joins PickAll":           {rels{servingRelease(0, pickAll, "a,b")}, clusters{a, b, c}, nil, []string{"web-0 to a,b,c"}},
		"a cluster joins a filled PickN":    {rels{servingRelease(0, pickTwo, "a,b")}, clusters{a, b, c}, nil, nil},
		"a cluster joins an unfilled PickN": {rels{servingRelease(0, pickTwo, "a")}, clusters{a, b}, nil, []string{"web-0 to a,b"}},
		"a named cluster joins PickFixed": {
			rels{servingRelease(0, pickFixed("a", "c"), "a")}, clusters{a, b, c}, nil, []string{"web-0 to a,c"},
		},
		"a tainted cluster joins":             {rels{servingRelease(0, pickAll, "a")}, clusters{a, clusterNamed("t", tainted)}, nil, nil},
		"a cluster that is there is tainted":  {rels{servingRelease(0, pickAll, "a,b")}, clusters{a, clusterNamed("b", tainted)}, nil, nil},
		"a cluster joins Releases of regions": {rels{servingRelease(0, nil, "a")}, clusters{a, b}, nil, nil},
		"a cluster joins while a block holds the rollout": {
			rels{servingRelease(0, pickAll, "a,b")}, clusters{a, b, c}, blocked, []string{"held"},
		},
		"only the newest Release is joined": {
			rels{retiredRelease(0, pickAll, "a"), servingRelease(1, pickAll, "a")}, clusters{a, b}, nil, []string{"web-1 to a,b"},
		},

		"a cluster leaves: its replacement comes first": {
			rels{servingRelease(0, pickTwo, "a,b")}, clusters{a, clusterNamed("b", deleted), c}, nil, []string{"web-0 to a,b,c"},
		},
		"its replacement does not serve yet": {
			rels{servingRelease(0, pickTwo, "a,b,!c")}, clusters{a, clusterNamed("b", deleted), c}, nil, nil,
		},
		"its replacement serves": {
			rels{servingRelease(0, pickTwo, "a,b,c")}, clusters{a, clusterNamed("b", deleted), c}, nil, []string{"web-0 to a,c"},
		},
		"its replacement serves, and the cluster that leaves does not answer": {
			rels{servingRelease(0, pickTwo, "a,!b,c")}, clusters{a, clusterNamed("b", deleted), c}, nil, []string{"web-0 to a,c"},
		},
		"a block keeps what leaves": {
			rels{servingRelease(0, pickTwo, "a,b,c")}, clusters{a, clusterNamed("b", deleted), c}, blocked, []string{"held"},
		},
		"more clusters than PickN wants": {
			rels{servingRelease(0, pickTwo, "a,b,c")}, clusters{a, b, c}, nil, []string{"web-0 to " + firstTwo("a", "b", "c")},
		},
		"more clusters than PickN wants, and not all serve": {
			rels{servingRelease(0, pickTwo, "!a,!b,!c")}, clusters{a, b, c}, nil, nil,
		},
		"nothing can replace it, and others serve": {
			rels{servingRelease(0, pickTwo, "a,b")}, clusters{a, clusterNamed("b", deleted)}, nil, []string{"web-0 to a"},
		},
		"the only cluster leaves": {rels{servingRelease(0, pickTwo, "b")}, clusters{clusterNamed("b", deleted)}, nil, nil},
		"PickAll loses a cluster": {
			rels{servingRelease(0, pickAll, "a,b")}, clusters{a, clusterNamed("b", removing)}, nil, []string{"web-0 to a"},
		},
		"the Cluster object is gone": {
			rels{servingRelease(0, pickTwo, "a,!gone")}, clusters{a, b}, nil, []string{"web-0 to a,b"},
		},
		"all Cluster objects are gone": {rels{servingRelease(0, pickTwo, "x,y")}, nil, nil, nil},
		"older Releases leave as well, after the newest": {
			rels{retiredRelease(0, pickTwo, "a,b"), retiredRelease(1, pickAll, "b"), servingRelease(2, pickTwo, "a,c,b")},
			clusters{a, clusterNamed("b", removing), c}, nil, []string{"web-2 to a,c", "web-1 to a,c", "web-0 to a"},
		},
		"older Releases leave when the newest has": {
			rels{retiredRelease(0, pickTwo, "a,b"), servingRelease(1, pickTwo, "a,c")}, clusters{a, clusterNamed("b", removing), c}, nil,
			[]string{"web-0 to a"},
		},
		"an older Release whose only cluster is gone stays as it is": {
			rels{retiredRelease(0, pickTwo, "x"), servingRelease(1, pickTwo, "a,c")}, clusters{a, c}, nil, nil,
		},
		"the incumbent still serves, and gets a replacement of its own": {
			rels{servingRelease(0, pickTwo, "a,b"), stagedRelease(1, pickTwo, "a,b")}, clusters{a, clusterNamed("b", deleted), c}, nil,
			[]string{"web-1 to a,b,c", "web-0 to a,b,c"},
		},
		"the incumbent's replacement does not serve yet": {
			rels{servingRelease(0, pickTwo, "a,b,!c"), stagedRelease(1, pickTwo, "a,b,c")}, clusters{a, clusterNamed("b", deleted), c}, nil, nil,
		},
		"both have left a cluster in the middle of a rollout": {
			rels{servingRelease(0, pickTwo, "a,b,c"), stagedRelease(1, pickTwo, "a,b,c")}, clusters{a, clusterNamed("b", deleted), c},
			func(s *scope) { s.history.Live[0].Installation.Spec.CanOverride = false }, []string{"web-1 to a,c", "web-0 to a,c"},
		},

		"a cluster leaves a Release of regions": {
			rels{regional(servingRelease(0, nil, "a,b"))}, clusters{a, clusterNamed("b", removing), c}, nil, []string{"web-0 to a,b,c"},
		},
		"what replaces it in the region serves": {
			rels{regional(servingRelease(0, nil, "a,b,c"))}, clusters{a, clusterNamed("b", removing), c}, nil, []string{"web-0 to a,c"},
		},
		"no more is added than the region wants": {
			rels{regional(servingRelease(0, nil, "a,b,!c"))},
			clusters{a, clusterNamed("b", removing), c, clusterNamed("d"), clusterNamed("e"), clusterNamed("f")}, nil, nil,
		},
		"a cluster of another region replaces nothing": {
			rels{regional(servingRelease(0, nil, "a,b"))}, clusters{a, clusterNamed("b", removing), clusterNamed("c", inRegion("s"))}, nil, nil,
		},
		"a cluster with onLeave Keep leaves nothing": {
			rels{regional(servingRelease(0, nil, "a,b"))}, clusters{a, clusterNamed("b", deleted), c}, nil, nil,
		},
		"the Cluster object of a Release of regions is gone": {rels{regional(servingRelease(0, nil, "a,x"))}, clusters{a, c}, nil, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := observedReleases(tc.rels...)
			if s.clusters = tc.clusters; s.clusters == nil {
				s.clusters = clusters{}
			}
			if tc.change != nil {
				tc.change(s)
			}
			p := planReleases(s, at)
			if diff := gocmp.Diff(tc.want, describeClusters(s, p.clusters)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for _, c := range p.clusters.changes {
				if len(c.clusters) == 0 {
					t.Error("a Release is left without clusters")
				}
			}
		})
	}
}

// TestClustersOfResourcesAreReplacedFewAtATime alternates additions and departures until nothing changes.
func TestClustersOfResourcesAreReplacedFewAtATime(t *testing.T) {
	bound := func(surge intstr.IntOrString) shipper.ReleaseEnvironment {
		return shipper.ReleaseEnvironment{Resources: &shipper.Resources{}, Strategy: &shipper.RolloutStrategy{
			Rolling: &shipper.RollingClusters{MaxSurge: &surge},
		}}
	}
	for sentence, tc := range map[string]struct {
		env         shipper.ReleaseEnvironment
		has, wanted string
		want        []string
	}{
		"all of a chart": {shipper.ReleaseEnvironment{}, "a,b,c", "d,e,f", []string{"a,b,c,d,e,f", "d,e,f"}},
		"a quarter by default": {
			shipper.ReleaseEnvironment{Resources: &shipper.Resources{}}, "a,b,c", "d,e,f",
			[]string{"a,b,c,d", "b,c,d", "b,c,d,e", "c,d,e", "c,d,e,f", "d,e,f"},
		},
		"two": {bound(intstr.FromInt32(2)), "a,b,c", "d,e,f", []string{"a,b,c,d,e", "c,d,e", "c,d,e,f", "d,e,f"}},
		"all": {bound(intstr.FromString("100%")), "a,b,c", "d,e,f", []string{"a,b,c,d,e,f", "d,e,f"}},
		"none counts as one: what serves goes on": {
			bound(intstr.FromInt32(0)), "a,b", "c,d", []string{"a,b,c", "b,c", "b,c,d", "c,d"},
		},
		"those that join while none leaves": {bound(intstr.FromInt32(1)), "a", "a,b,c,d", []string{"a,b,c,d"}},
		"those that leave while none joins": {bound(intstr.FromInt32(1)), "a,b,c", "a", []string{"a"}},
		"more join than leave":              {bound(intstr.FromInt32(1)), "a", "b,c,d", []string{"a,b,c,d", "b,c,d"}},
		"more leave than join":              {bound(intstr.FromInt32(1)), "a,b,c,d", "e,f", []string{"c,d", "c,d,e", "d,e", "d,e,f", "e,f"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			has, wanted := strings.Split(tc.has, ","), strings.Split(tc.wanted, ",")
			var got []string
			for range 10 {
				next, end := paced(&tc.env, has, wanted)
				if slices.Equal(next, has) {
					next = end
				}
				if slices.Equal(next, has) {
					break
				}
				has = next
				got = append(got, strings.Join(has, ","))
			}
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestAPlanForClustersCanBeInterruptedAnywhere carries out only the first write of each plan, and plans again.
func TestAPlanForClustersCanBeInterruptedAnywhere(t *testing.T) {
	s := observedReleases(retiredRelease(0, pickTwo, "a,b"), retiredRelease(1, pickTwo, "b"), servingRelease(2, pickTwo, "a,b"))
	s.clusters = []shipper.Cluster{clusterNamed("a"), clusterNamed("b", removing), clusterNamed("c")}
	var got []string
	for range 10 {
		p := planReleases(s, at)
		if len(p.clusters.changes) == 0 {
			break
		}
		change := p.clusters.changes[0]
		got = append(got, describeClusters(s, clustersPlan{changes: []clustersChange{change}})...)
		make := retiredRelease
		if change.index == 2 {
			make = servingRelease
		}
		s.history.Live[change.index] = make(change.index, pickTwo, strings.Join(change.clusters, ","))
	}
	want := []string{"web-2 to a,b,c", "web-2 to a,c", "web-1 to a,c", "web-0 to a"}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, r := range s.history.Live {
		if slices.Contains(stamp.Clusters(r.Release), "b") {
			t.Errorf("%s is still in b", r.Release.Name)
		}
	}
}
