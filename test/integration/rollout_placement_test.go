// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// joinedCluster is cluster for one that has joined and is ready.
func (s *rolloutFixture) joinedCluster(suffix string) string {
	s.t.Helper()
	name := s.cluster(suffix)
	s.edits(name, func(c *shipper.Cluster) {
		for _, t := range []string{shipper.ClusterJoined, shipper.ClusterReady} {
			c.Status.Conditions = shipper.SetCondition(c.Status.Conditions, shipper.Condition{Type: t, Status: "True"}, metav1.Now())
		}
	})
	return name
}

// edits changes a Cluster, and its status.
func (s *rolloutFixture) edits(name string, change func(*shipper.Cluster)) {
	s.t.Helper()
	ctx, c := context.Background(), &shipper.Cluster{} // also when the test is over
	s.must(s.Get(ctx, client.ObjectKey{Name: name}, c))
	was := c.DeepCopy()
	change(c)
	status := c.DeepCopy()
	s.must(client.IgnoreNotFound(s.Patch(ctx, c, client.MergeFrom(was))))
	s.must(client.IgnoreNotFound(s.Status().Patch(ctx, status, client.MergeFrom(was))))
}

// leaves deletes a Cluster, which another program keeps.
func (s *rolloutFixture) leaves(name string) {
	s.t.Helper()
	const keeper = "test.example.com/keeper"
	s.edits(name, func(c *shipper.Cluster) { c.Spec.OnLeave, c.Finalizers = shipper.OnLeaveRemove, []string{keeper} })
	c := &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.must(s.Delete(s.t.Context(), c))
	s.t.Cleanup(func() { s.edits(name, func(c *shipper.Cluster) { c.Finalizers = nil }) })
}

// placed creates web with a placement, of which the clusters are those of the fixture.
func (s *rolloutFixture) placed(p shipper.Placement, steps []shipper.RolloutStrategyStep) {
	s.t.Helper()
	own := metav1.LabelSelector{MatchLabels: map[string]string{shipper.RegionLabel: s.namespace}}
	p.Affinity = &shipper.ClusterAffinity{Required: []shipper.ClusterTerm{{LabelSelector: &own}}}
	s.apply(func(app *shipper.Application) {
		app.Spec.Template = s.template(0, steps)
		app.Spec.Template.ClusterRequirements = shipper.ClusterRequirements{Placement: &p}
	})
}

// clusters are the suffixes of the clusters of the newest Release, and what its status says of them and of others.
func (s *rolloutFixture) clusters() string {
	rel := s.release(-1)
	suffix := func(name string) string { return strings.TrimPrefix(name, s.namespace+"-") }
	var out []string
	for _, name := range stamp.Clusters(rel) {
		out = append(out, suffix(name))
	}
	said := []string{strings.Join(out, ",")}
	if p := rel.Status.Placement; p != nil {
		said = append(said, fmt.Sprintf("%d of %d", p.Chosen, p.Wanted))
		for _, c := range p.Clusters {
			said = append(said, suffix(c.Name)+" "+string(c.Reason))
		}
		for _, r := range p.Rejected {
			for _, name := range r.Examples { // those of other tests as well
				if strings.HasPrefix(name, s.namespace+"-") {
					said = append(said, suffix(name)+" "+string(r.Reason))
				}
			}
		}
	}
	return strings.Join(said, "; ")
}

func pickN(n int32) shipper.Placement {
	return shipper.Placement{Type: shipper.PickN, Count: ptr.To(n)}
}

func TestPickAllGetsClustersThatJoinWithoutANewRelease(t *testing.T) {
	t.Parallel()
	s := newRolloutFixture(t)
	s.joinedCluster("a")
	s.joinedCluster("b")
	s.placed(shipper.Placement{}, vanguard)
	s.until("1%/0 1%/0 at staging, waiting for command", s.shares)
	s.until("a,b; 2 of 2; a Picked; b Picked", s.clusters)

	c := s.cluster("c")
	s.until("a,b; 2 of 2; a Picked; b Picked; c NotJoined", s.clusters)
	s.edits(c, func(c *shipper.Cluster) {
		c.Status.Conditions = []shipper.Condition{{Type: shipper.ClusterReady, Status: "True", LastTransitionTime: metav1.Now()}}
	})
	s.until("a,b,c; 3 of 3; a Picked; b Picked; c Picked", s.clusters)
	s.until("1%/0 1%/0 1%/0 at staging, waiting for command", s.shares)
	s.goTo(2)
	s.until("100%/100 100%/100 100%/100 at full on, complete", s.shares)

	s.joinedCluster("d")
	s.until("a,b,c,d; 4 of 4; a Picked; b Picked; c Picked; d Picked", s.clusters)
	s.until("100%/100 100%/100 100%/100 100%/100 at full on, complete", s.shares)
	s.until("True", s.relCondition(0, shipper.ReleaseScheduled))
	s.untilEvent(s.release(0).Name, "ClustersSelected", "-d")

	s.edits(s.namespace+"-d", func(c *shipper.Cluster) {
		c.Spec.Taints = []shipper.ClusterTaint{{Key: "gpu", Effect: shipper.TaintNoSchedule}}
	})
	s.apply(func(app *shipper.Application) { (*app.Spec.Template.Values)["edit"] = int64(1) })
	s.until("a,b,c,d; 4 of 4; a Kept; b Kept; c Kept; d Kept", s.clusters)
	if got := len(s.releases()); got != 2 {
		t.Errorf("there are %d Releases, want one for each edit", got)
	}
}

func TestPickNGoesAheadAndIsFilledLater(t *testing.T) {
	t.Parallel()
	s := newRolloutFixture(t)
	s.placed(pickN(2), allIn)
	s.until("; 0 of 2", s.clusters)
	s.joinedCluster("a")
	s.until("100%/100 at full on, complete", s.shares)
	s.until("a; 1 of 2; a Picked", s.clusters)
	if got := s.relCondition(0, shipper.ReleaseScheduled)(); !strings.HasPrefix(got, "False PlacementUnfulfilled 1 of 2 clusters: ") {
		t.Errorf("got %q", got)
	}
	block := s.block("freeze")
	s.until("True RolloutsBlocked rollouts blocked by: "+s.namespace+"/freeze", s.relCondition(0, shipper.ReleaseBlocked))
	s.joinedCluster("b")
	if got := s.clusters(); !strings.HasPrefix(got, "a; 1 of 2; a Picked") {
		t.Errorf("while a block holds the rollout: got %q", got)
	}
	s.must(s.Delete(t.Context(), block))
	s.until("a,b; 2 of 2; a Picked; b Picked", s.clusters)
	s.until("100%/100 100%/100 at full on, complete", s.shares)
	s.until("True", s.relCondition(0, shipper.ReleaseScheduled))
}

func TestAClusterLeavesWhenItsReplacementServes(t *testing.T) {
	t.Parallel()
	s := newRolloutFixture(t)
	all := []string{s.joinedCluster("a"), s.joinedCluster("b"), s.joinedCluster("c")}
	s.placed(pickN(2), allIn)
	s.until("100%/100 100%/100 at full on, complete", s.shares)
	s.apply(func(app *shipper.Application) { (*app.Spec.Template.Values)["edit"] = int64(1) })
	s.until("0%/0 0%/0 at full on, complete | 100%/100 100%/100 at full on, complete", s.shares)

	has := stamp.Clusters(s.release(-1))
	free := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(has, name) })
	rolloutTargets.setDown(t, true, s.namespace, free...)
	s.leaves(has[0])
	s.until(strings.Join(all, ","), func() string { return strings.Join(stamp.Clusters(s.release(-1)), ",") })
	it := &shipper.InstallationTarget{}
	s.until(strings.Join(all, ","), func() string {
		s.must(s.Get(t.Context(), client.ObjectKeyFromObject(s.release(-1)), it))
		return strings.Join(it.Spec.Clusters, ",")
	})
	s.annotate(s.app(), 1)
	if diff := stamp.Clusters(s.release(-1)); len(diff) != 3 {
		t.Errorf("the Release is in %v before the replacement serves", diff)
	}

	rolloutTargets.setDown(t, false, s.namespace, free...)
	left := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == has[0] })
	s.until(strings.Join(left, ","), func() string { return strings.Join(stamp.Clusters(s.release(-1)), ",") })
	s.until(has[1], func() string { return strings.Join(stamp.Clusters(s.release(0)), ",") })
	s.until("0%/0 at full on, complete | 100%/100 100%/100 at full on, complete", s.shares)
}

func TestAClusterWithoutItsObjectIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	s := newRolloutFixture(t)
	a := s.joinedCluster("a")
	s.placed(pickN(1), vanguard)
	s.until("1%/0 at staging, waiting for command", s.shares)
	rolloutTargets.setDown(t, true, s.namespace, a)
	s.must(s.Delete(t.Context(), &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: a}}))
	s.until("a; 0 of 1", s.clusters)
	s.joinedCluster("b")
	s.until("b; 1 of 1; b Picked", s.clusters)
	s.until("1%/0 at staging, waiting for command", s.shares)
}

func TestAClusterThatIsToBeEmptiedLeavesReleasesWithRegions(t *testing.T) {
	t.Parallel()
	s := newRolloutFixture(t)
	a, b, c := s.cluster("a"), s.cluster("b"), s.cluster("c")
	s.edit(0, allIn)
	s.until("100%/100 100%/100 at full on, complete", s.shares)
	has := stamp.Clusters(s.release(0))
	s.leaves(has[1])
	left := slices.DeleteFunc([]string{a, b, c}, func(name string) bool { return name == has[1] })
	s.until(strings.Join(left, ","), func() string { return strings.Join(stamp.Clusters(s.release(0)), ",") })
	s.until("100%/100 100%/100 at full on, complete", s.shares)
}
