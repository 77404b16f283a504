// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/pod"
)

// TestALeaderThatStoodStillUndoesNothing is not parallel: all tests share the reconciler. The leader is suspended during a
// step until another replica leads and completes the rollout. When it resumes, it writes to no cluster and exits. It is started again.
func TestALeaderThatStoodStillUndoesNothing(t *testing.T) {
	s := begin(t, []string{west, east}, []string{westRegion, eastRegion})
	options := world.PodOptions
	options.Dir = filepath.Join(options.Dir, "stand-by")
	other, err := pod.New(s.Ctx, options)
	s.Must("giving another reconciler credentials", err)
	t.Cleanup(func() {
		if err := other.Stop(); err != nil {
			t.Error(err)
		}
	})
	incumbent, contender := s.vanguardOverAllIn(4)
	s.Must("starting another reconciler", other.StartReconciler(s.Ctx))

	s.Steps(contender, 1)
	old := world.Pod.Reconciler
	s.Must("suspending the leader", old.Suspend())
	t.Cleanup(func() { // the next test needs a reconciler
		if _ = old.Resume(); !t.Failed() {
			return
		}
		old.Kill()
		if err := world.Pod.StartReconciler(context.WithoutCancel(s.Ctx)); err != nil {
			t.Error(err)
		}
	})
	s.WaitsForCommand(contender, 1)
	s.Steps(contender, 2)
	s.Completes(contender)
	s.readyPods(contender, 4)
	s.readyPods(incumbent, 0)
	s.endpoints(4)

	before := s.nothingIsWritten()
	s.Must("letting the old leader go on", old.Resume())
	s.Eventually("the old leader", "started again, once, after it lost its lease", func() (string, error) {
		if old.Restarts() != 1 {
			return "runs, or ended otherwise", old.Ended()
		}
		return "started again, once, after it lost its lease", nil
	})
	for name, writes := range s.allWrites() {
		if more := writes[len(before[name]):]; len(more) > 0 {
			t.Errorf("there were writes to %s after the leader resumed:\n%s", name, strings.Join(more, "\n"))
		}
	}
	s.readyPods(contender, 4)
	s.readyPods(incumbent, 0)

	s.Must("stopping the other one", other.Reconciler.Stop())
	s.Steps(contender, 1)
	s.WaitsForCommand(contender, 1)
}

// nothingIsWritten waits until Shipper has written nothing for longer than a status may be delayed, and returns all writes.
func (s *fixture) nothingIsWritten() (writes map[string][]string) {
	s.Helper()
	before, since := -1, time.Now()
	s.Eventually("writes", "none any more", func() (string, error) {
		writes = s.allWrites()
		n := 0
		for _, some := range writes {
			n += len(some)
		}
		if n != before {
			before, since = n, time.Now()
		}
		if time.Since(since) < 5*time.Second {
			return fmt.Sprint(n), nil
		}
		return "none any more", nil
	})
	return writes
}

// allWrites lists Shipper's writes by cluster.
func (s *fixture) allWrites() map[string][]string {
	s.Helper()
	out := map[string][]string{}
	for account, clusters := range map[string][]*fleet.Cluster{
		shipper.ManagementServiceAccount:  {world.Fleet.Management},
		shipper.ApplicationServiceAccount: world.Fleet.Applications,
	} {
		for _, c := range clusters {
			writes, err := pod.Written(c, account)
			s.Must("reading what was written", err)
			out[c.Name] = writes
		}
	}
	return out
}
