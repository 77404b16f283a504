// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
)

const (
	// appName is the Application of every test.
	appName = "super-server"
	// serviceName is the Service of the Application's chart.
	serviceName = "test-nginx-prod"
	// perseverance bounds every wait while the reconciler is killed after each write.
	perseverance = 8 * time.Minute
	// quiet is how long the reconciler must write nothing to count as idle.
	quiet = 5 * time.Second
)

// fixture is one test, with an Application and its rollout.
type fixture struct {
	env.Rollout

	guards     []*guard
	bystanders map[string]map[string]string // resource versions of objects that Shipper must not touch, by cluster
}

// begin creates a namespace in every cluster, and watches it.
func begin(t *testing.T) *fixture {
	world.gate.decide(spared)
	s := &fixture{Rollout: *world.Begin(t, "kill-", appName)}
	s.Alive = world.reconciler.failure
	asked, err := newWeights(s.Ctx, world.Management, s.Namespace)
	s.Must("watching the weights", err)
	for name := range world.Clusters {
		g, err := newGuard(s.Ctx, name, s.Namespace, asked)
		s.Must("watching "+name, err)
		s.guards = append(s.guards, g)
	}
	t.Cleanup(func() {
		world.gate.decide(spared)
		if t.Failed() {
			writes, lives := world.gate.count()
			t.Logf("%d lives, %d writes:\n%s", lives, len(writes), strings.Join(writes, "\n"))
			t.Logf("reconciler:\n%s", world.reconciler.tail())
		}
	})
	return s
}

// rests waits until nothing was written for a while.
func (s *fixture) rests() {
	s.Helper()
	before, since := -1, time.Now()
	s.Eventually("writes of the reconciler", "none any more", func() (string, error) {
		if n := world.gate.total(); n != before {
			before, since = n, time.Now()
		}
		if time.Since(since) >= quiet {
			return "none any more", nil
		}
		return fmt.Sprint(before), nil
	})
}

var allIn, vanguard = env.AllIn(), env.Vanguard()

// application returns an Application with a chart's version, replicas and a strategy, in all clusters.
func (s *fixture) application(name, version string, replicas int, steps env.Strategy) *shipper.Application {
	return world.Application(s.Namespace, name, version, replicas, steps, slices.Sorted(maps.Values(clusters))...)
}

// settles waits until a Release waits for nothing, and no other exists.
func (s *fixture) settles(release string) {
	s.Helper()
	s.Eventually("state of "+release, "alone, False False False False", func() (string, error) {
		rel, err := s.Get(release)
		history, failure := s.History(s.App)
		if err = errors.Join(err, failure); err != nil || rel.Status.Strategy == nil || len(history) != 1 {
			return "none, or not alone", err
		}
		st := rel.Status.Strategy.State
		return fmt.Sprint("alone, ", st.WaitingForInstallation, " ", st.WaitingForCapacity, " ", st.WaitingForTraffic, " ",
			st.WaitingForCommand), nil
	})
}
