// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"slices"
	"testing"

	"shipper.dev/shipper/test/fleet"
)

// putBack is the application cluster whose etcd is restored; present is the other one.
const putBack, present = "us-east-1", "eu-west-1"

// TestAnApplicationClusterIsPutBack restores the etcd of an application cluster from before the last rollout: resource
// versions decrease, and later objects are gone. The reconciler runs all the time.
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
	s.Steps(next, 2)
	s.Completes(next)
	s.pods(next, replicas, replicas)
	s.pods(contender, 0, 0)
}

// clusterOf finds an application cluster by its name.
func clusterOf(name string) *fleet.Cluster {
	all := world.lost.Fleet.Applications
	return all[slices.IndexFunc(all, func(c *fleet.Cluster) bool { return c.Name == name })]
}
