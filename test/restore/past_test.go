// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/fleet"
)

// putBack is the application cluster whose etcd is restored; present is the other one.
const putBack, present = "us-east-1", "eu-west-1"

// TestAnApplicationClusterIsPutBack restores the etcd of an application cluster from before the last rollout: resource
// versions decrease, and later objects are gone. The reconciler runs all the time. Then it restores that of the management cluster.
func TestAnApplicationClusterIsPutBack(t *testing.T) {
	s := begin(t).on(t)
	s.applies(environment("first", "0.0.1", allIn))
	incumbent := s.Release(0)
	s.Completes(incumbent)
	s.pods(incumbent, replicas, replicas)
	cluster := clusterOf(putBack)
	then, err := cluster.Snapshot()
	s.Must("taking a snapshot", err)

	s.edits(environment("second", "0.0.2", allIn))
	contender := s.Release(1)
	s.Completes(contender)
	s.pods(contender, replicas, replicas)
	s.pods(incumbent, 0, 0)
	for _, g := range s.guards {
		if g.cluster == present {
			g.hold(replicas, false)
		}
	}
	s.Must("restoring the snapshot", cluster.Restore(s.Ctx, then))
	s.pods(contender, replicas, replicas)
	s.pods(incumbent, 0, 0)
	s.scheduled(contender)
	s.scheduled(incumbent)
	s.Completes(contender)
	s.judged()
	s.Must("running the reconciler", world.lost.Pod.Reconciler.Ended())

	s.edits(environment("third", "0.0.1", vanguard))
	next := s.Release(2)
	s.WaitsForCommand(next, 0)
	s.managementIsPutBack(contender, next)
}

// managementIsPutBack completes a Release at its first step, and restores the etcd of the management cluster from before: the one that it
// replaced has all traffic and no Pods then. What serves goes on serving until that has its Pods.
func (s *fixture) managementIsPutBack(incumbent, contender string) {
	s.Helper()
	management := world.lost.Fleet.Management
	then, err := management.Snapshot()
	s.Must("taking a snapshot of the management cluster", err)
	finish := func() {
		s.Steps(contender, 2)
		s.Completes(contender)
		s.pods(contender, replicas, replicas)
		s.pods(incumbent, 0, 0)
	}
	finish()

	for _, g := range s.guards {
		g.hold(replicas, true)
	}
	s.Must("ending Shipper", world.lost.Pod.Stop())
	s.Must("restoring the management cluster", management.Restore(s.Ctx, then))
	s.Must("starting the webhook", world.lost.Pod.StartWebhook(s.Ctx))
	s.Must("starting the reconciler", world.lost.Pod.StartReconciler(s.Ctx))
	s.pods(incumbent, replicas, replicas)
	s.pods(contender, 1, 0)
	s.WaitsForCommand(contender, 0)
	s.writable(contender)
	finish()
	s.judged()
}

// writable waits until the restarted API server has found the kinds that policies name: it looks every 30 s, and refuses all writes before.
func (s *fixture) writable(release string) {
	s.Helper()
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: release}}
	s.Eventually("a write to "+release, "admitted", func() (string, error) {
		err := s.User.Patch(s.Ctx, rel.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"targetStep":0}}`)), client.DryRunAll)
		if err != nil && strings.Contains(err.Error(), "failed to configure policy") {
			return err.Error(), nil
		}
		return "admitted", err
	})
}

// clusterOf finds an application cluster by its name.
func clusterOf(name string) *fleet.Cluster {
	all := world.lost.Fleet.Applications
	return all[slices.IndexFunc(all, func(c *fleet.Cluster) bool { return c.Name == name })]
}
