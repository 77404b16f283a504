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
	incumbent := s.release(0)
	s.completes(incumbent)
	s.pods(incumbent, replicas, replicas)
	cluster := clusterOf(putBack)
	then, err := cluster.Snapshot()
	s.must("taking a snapshot", err)

	s.edits(environment("second", "0.0.2", allIn))
	contender := s.release(1)
	s.completes(contender)
	s.pods(contender, replicas, replicas)
	s.pods(incumbent, 0, 0)
	for _, g := range s.guards {
		if g.cluster == present {
			g.hold(replicas, false)
		}
	}
	s.must("restoring the snapshot", cluster.Restore(s.ctx, then))
	s.pods(contender, replicas, replicas)
	s.pods(incumbent, 0, 0)
	s.scheduled(contender)
	s.scheduled(incumbent)
	s.completes(contender)
	s.judged()
	s.must("running the reconciler", world.lost.pod.Reconciler.Ended())

	s.edits(environment("third", "0.0.1", vanguard))
	next := s.release(2)
	s.waitsForCommand(next, 0)
	s.steps(next, 2)
	s.completes(next)
	s.pods(next, replicas, replicas)
	s.pods(contender, 0, 0)
}

// clusterOf finds an application cluster by its name.
func clusterOf(name string) *fleet.Cluster {
	all := world.lost.fleet.Applications
	return all[slices.IndexFunc(all, func(c *fleet.Cluster) bool { return c.Name == name })]
}
