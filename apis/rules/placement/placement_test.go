// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const app = "test-application"

// change edits a cluster.
type change func(*shipper.Cluster)

func weight(n int32) change { return func(c *shipper.Cluster) { c.Spec.Scheduler.Weight = &n } }
func identity(name string) change {
	return func(c *shipper.Cluster) { c.Spec.Scheduler.Identity = &name }
}
func offers(what ...string) change     { return func(c *shipper.Cluster) { c.Spec.Capabilities = what } }
func unschedulable(c *shipper.Cluster) { c.Spec.Scheduler.Unschedulable = true }
func going(c *shipper.Cluster) {
	c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
}

func cluster(name, region string, changes ...change) shipper.Cluster {
	c := shipper.Cluster{}
	c.Name, c.Spec.Region = name, region
	for _, change := range changes {
		change(&c)
	}
	return c
}

// in makes clusters cluster-0, cluster-1… of these regions.
func in(regions ...string) []shipper.Cluster {
	var out []shipper.Cluster
	for i, region := range regions {
		out = append(out, cluster(fmt.Sprintf("cluster-%d", i), region))
	}
	return out
}

// but edits the i-th cluster.
func but(clusters []shipper.Cluster, i int, changes ...change) []shipper.Cluster {
	for _, change := range changes {
		change(&clusters[i])
	}
	return clusters
}

func wants(regions ...shipper.RegionRequirement) shipper.ClusterRequirements {
	return shipper.ClusterRequirements{Regions: regions}
}

func some(region string, replicas int32) shipper.RegionRequirement {
	return shipper.RegionRequirement{Name: region, Replicas: &replicas}
}

func one(region string) shipper.RegionRequirement { return shipper.RegionRequirement{Name: region} }

func capable(req shipper.ClusterRequirements, capabilities ...string) shipper.ClusterRequirements {
	req.Capabilities = capabilities
	return req
}

func TestScoreIsThatOfTheOriginal(t *testing.T) {
	cases := []struct {
		app, cluster string
		want         float64
	}{
		{app, "cluster-0", 87.907198},
		{app, "cluster-1", 415.088370},
		{app, "cluster-2", 95.531892},
		{app, "cluster-3", 14.512631},
		{"super-server", "kube-us-east1-a", 260.699480},
		{"super-server", "kube-eu-west2-a", 15.465651},
	}
	for _, tc := range cases {
		c := cluster(tc.cluster, "r")
		if got := placement.Score(tc.app, &c); math.Abs(got-tc.want) > 0.000001 {
			t.Errorf("%s on %s: got %f, want %f", tc.app, tc.cluster, got, tc.want)
		}
	}
}

func TestChoose(t *testing.T) {
	const us, eu = "us-east", "eu-west"
	four := func() []shipper.Cluster { return in(us, us, eu, eu) }
	cases := map[string]struct {
		req      shipper.ClusterRequirements
		clusters []shipper.Cluster
		want     []string
		reason   string
		message  string
	}{
		"no regions": {
			clusters: in("matches"),
			reason:   shipper.NoRegionsSpecified, message: "clusterRequirements.regions is empty: name a region",
		},
		"one cluster matches": {
			req: wants(one("matches")), clusters: in("matches", "does not"), want: []string{"cluster-0"},
		},
		"both clusters match": {
			req: wants(some("matches", 2)), clusters: in("matches", "matches"), want: []string{"cluster-0", "cluster-1"},
		},
		"only one of them is capable": {
			req: capable(wants(one("r")), "gpu"), clusters: but(in("r", "r"), 0, offers("gpu", "pv")),
			want: []string{"cluster-0"},
		},
		"all capabilities are needed": {
			req:      capable(wants(one("r")), "pv", "gpu"),
			clusters: but(but(in("r", "r"), 0, offers("pv", "gpu")), 1, offers("gpu")),
			want:     []string{"cluster-0"},
		},
		"no cluster is in the region": {
			req: wants(one("r")), clusters: in("s"),
			reason: shipper.NotEnoughClustersInRegion, message: `region "r" has 0 of the 1 schedulable clusters wanted`,
		},
		"no cluster is capable": {
			req: capable(wants(one("r")), "pv", "gpu"), clusters: in("r"),
			reason:  shipper.NotEnoughCapableClustersInRegion,
			message: `region "r" has 0 of the 1 clusters wanted that offer gpu, pv`,
		},
		"a capability is wanted twice": {
			req: capable(wants(one("r")), "pv", "gpu", "pv", "gpu", "gpu"), clusters: in("r"),
			reason:  shipper.DuplicateCapabilityRequirement,
			message: "clusterRequirements.capabilities has more than once: gpu, pv",
		},
		"one in each of two regions": {
			req: wants(one(us), one(eu)), clusters: four(), want: []string{"cluster-1", "cluster-2"},
		},
		"two in one region and one in another": {
			req: wants(some(us, 2), one(eu)), clusters: four(), want: []string{"cluster-0", "cluster-1", "cluster-2"},
		},
		"too few are schedulable": {
			req: wants(some(us, 2)), clusters: but(but(in(us, us, us), 0, unschedulable), 2, unschedulable),
			reason: shipper.NotEnoughClustersInRegion, message: `region "us-east" has 1 of the 2 schedulable clusters wanted`,
		},
		"a heavy weight outweighs the hash": {
			req: wants(one(us), one(eu)), clusters: but(but(four(), 0, weight(900)), 3, weight(900)),
			want: []string{"cluster-0", "cluster-3"},
		},
		"a slightly heavier weight does not": {
			req: wants(one(us), one(eu)), clusters: but(four(), 0, weight(101)), want: []string{"cluster-1", "cluster-2"},
		},
		"unless the hash is made the same": {
			req: wants(one(us), one(eu)), clusters: but(four(), 0, identity("cluster-1"), weight(101)),
			want: []string{"cluster-0", "cluster-2"},
		},
		"a cluster that is being deleted is not chosen": {
			req: wants(one(us)), clusters: but(in(us, us), 1, going), want: []string{"cluster-0"},
		},
		"a tainted cluster is not chosen": {
			req: wants(some(us, 2)), clusters: but(in(us, us), 1, taint("gpu", "yes")),
			reason: shipper.NotEnoughClustersInRegion, message: `region "us-east" has 1 of the 2 schedulable clusters wanted ` +
				`(tainted: 1; a placement can tolerate taints)`,
		},
		"weight 0 puts clusters last, by name": {
			req: wants(some("r", 2)), clusters: but(but(in("r", "r", "r"), 1, weight(0)), 2, weight(0)),
			want: []string{"cluster-0", "cluster-1"},
		},
		"a negative weight comes after 0": {
			req: wants(one("r")), clusters: but(but(in("r", "r"), 0, weight(-1)), 1, weight(0)), want: []string{"cluster-1"},
		},
		"the last of two entries for a region counts": {
			req: wants(some("r", 1), some("r", 2)), clusters: in("r", "r"), want: []string{"cluster-0", "cluster-1"},
		},
		"none are wanted": {req: wants(some("r", 0)), clusters: in("r")},
		"fewer than none are none": {
			req: wants(some("r", -3), one("s")), clusters: in("r", "s"), want: []string{"cluster-1"},
		},
		"every region that lacks clusters is named, in order": {
			req: capable(wants(one("z"), one("c"), some("a", 3), one("b")), "gpu"), clusters: in("c", "b"),
			reason: shipper.NotEnoughClustersInRegion,
			message: `region "a" has 0 of the 3 schedulable clusters wanted; ` +
				`region "z" has 0 of the 1 schedulable clusters wanted`,
		},
		"every region that lacks capable clusters is named, in order": {
			req: capable(wants(one("c"), one("b")), "gpu"), clusters: in("c", "b"),
			reason: shipper.NotEnoughCapableClustersInRegion,
			message: `region "b" has 0 of the 1 clusters wanted that offer gpu; ` +
				`region "c" has 0 of the 1 clusters wanted that offer gpu`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(tc.clusters)
			for range 3 {
				got, err := placement.Choose(app, tc.req, tc.clusters)
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				var refusal *placement.Error
				if errors.As(err, &refusal); (refusal != nil) != (tc.reason != "") {
					t.Fatalf("got error %v, want %q", err, tc.reason)
				}
				if refusal != nil && (refusal.Reason != tc.reason || err.Error() != tc.message) {
					t.Errorf("got %s %q, want %s %q", refusal.Reason, err, tc.reason, tc.message)
				}
				slices.Reverse(tc.clusters)
			}
			slices.Reverse(tc.clusters)
			if diff := cmp.Diff(before, tc.clusters); diff != "" {
				t.Errorf("the clusters were changed: -want +got:\n%s", diff)
			}
		})
	}
}
