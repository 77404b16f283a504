// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const (
	// appName is the Application of every test.
	appName = "super-server"
	// serviceName is the Service of the Application's chart.
	serviceName = "test-nginx-prod"
	// patience bounds every wait while the reconciler is not killed.
	patience = 60 * time.Second
	// perseverance bounds every wait while the reconciler is killed after each write.
	perseverance = 4 * time.Minute
	// quiet is how long the reconciler must write nothing to count as idle.
	quiet = 5 * time.Second
)

// fixture is one namespace with one Application and its rollout.
type fixture struct {
	*testing.T
	ctx        context.Context
	namespace  string
	guards     []*guard
	bystanders map[string]map[string]string // resource versions of objects that Shipper must not touch, by cluster
	patience   time.Duration
}

// begin creates a namespace in every cluster, with objects in it that Shipper must not touch.
func begin(t *testing.T) *fixture {
	s := &fixture{T: t, ctx: t.Context(), patience: patience}
	world.gate.decide(spared)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "kill-"}}
	s.must("creating a namespace", world.management.Create(s.ctx, ns))
	s.namespace = ns.Name
	asked, err := newWeights(s.ctx, world.management, s.namespace)
	s.must("watching the weights", err)
	for name, c := range world.clients {
		s.must("creating the namespace", c.Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns.Name}}))
		g, err := newGuard(s.ctx, name, s.namespace, asked)
		s.must("watching "+name, err)
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

func (s *fixture) must(doing string, err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", doing, err)
	}
}

// eventually polls until look returns expected, or fails with the last value.
func (s *fixture) eventually(what, expected string, look func() (string, error)) {
	s.Helper()
	deadline := time.NewTimer(s.patience)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		seen, err := look()
		if err == nil && seen == expected {
			return
		}
		s.must("running the reconciler", world.reconciler.failure())
		select {
		case <-deadline.C:
			s.Fatalf("%s, within %s:\n  expected: %s\n  seen:     %s (error: %v)", what, s.patience, expected, seen, err)
		case <-tick.C:
		}
	}
}

// rests waits until nothing was written for a while.
func (s *fixture) rests() {
	s.Helper()
	before, since := -1, time.Now()
	s.eventually("writes of the reconciler", "none any more", func() (string, error) {
		if n := world.gate.total(); n != before {
			before, since = n, time.Now()
		}
		if time.Since(since) >= quiet {
			return "none any more", nil
		}
		return fmt.Sprint(before), nil
	})
}

// strategy is a list of steps, each {incumbent capacity, contender capacity, incumbent traffic, contender traffic}.
type strategy []struct {
	name                   string
	ci, cc, trafficI, trac int32
}

var (
	allIn    = strategy{{"full on", 0, 100, 0, 100}}
	vanguard = strategy{{"staging", 100, 1, 100, 0}, {"50/50", 50, 50, 50, 50}, {"full on", 0, 100, 0, 100}}
)

// application returns an Application with a chart's version, replicas and a strategy, in all clusters.
func (s *fixture) application(name, version string, replicas int, steps strategy) *shipper.Application {
	values := shipper.ChartValues{"replicaCount": int64(replicas)}
	app := &shipper.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec: shipper.ApplicationSpec{Template: shipper.ReleaseEnvironment{
			Chart:    shipper.Chart{Name: "test-nginx", Version: version, RepoURL: world.charts.URL},
			Values:   &values,
			Strategy: &shipper.RolloutStrategy{},
		}},
	}
	for _, c := range world.fleet.Applications {
		app.Spec.Template.ClusterRequirements.Regions = append(app.Spec.Template.ClusterRequirements.Regions,
			shipper.RegionRequirement{Name: clusters[c.Name]})
	}
	for _, step := range steps {
		app.Spec.Template.Strategy.Steps = append(app.Spec.Template.Strategy.Steps, shipper.RolloutStrategyStep{
			Name:     step.name,
			Capacity: shipper.RolloutStrategyStepValue{Incumbent: step.ci, Contender: step.cc},
			Traffic:  shipper.RolloutStrategyStepValue{Incumbent: step.trafficI, Contender: step.trac},
		})
	}
	return app
}

// edits replaces the Application's template.
func (s *fixture) edits(template shipper.ReleaseEnvironment) {
	s.Helper()
	app := s.app(appName)
	before := app.DeepCopy()
	app.Spec.Template = template
	s.must("editing the application", world.management.Patch(s.ctx, app, client.MergeFrom(before)))
}

func (s *fixture) app(name string) *shipper.Application {
	s.Helper()
	app := &shipper.Application{}
	s.must("reading the application", world.management.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, app))
	return app
}

// release waits until the Application has its n-th Release, counting from 0, and names it.
func (s *fixture) release(application string, n int) string {
	s.Helper()
	name := ""
	s.eventually("releases in the history of "+application, fmt.Sprint(n+1), func() (string, error) {
		app := s.app(application)
		if len(app.Status.History) > n {
			name = app.Status.History[n]
		}
		return fmt.Sprint(len(app.Status.History)), nil
	})
	return name
}

// completes waits until a Release is complete.
func (s *fixture) completes(release string) {
	s.Helper()
	s.eventually("completion of "+release, "True", func() (string, error) {
		rel, err := s.get(release)
		if c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseComplete); c != nil {
			return strings.TrimSpace(string(c.Status) + " " + c.Message), err
		}
		return "absent", err
	})
}

func (s *fixture) get(release string) (*shipper.Release, error) {
	rel := &shipper.Release{}
	return rel, world.management.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: release}, rel)
}

// waitsForCommand waits until a Release has achieved a step and reports that it waits for the next command.
func (s *fixture) waitsForCommand(release string, step int32) {
	s.Helper()
	s.eventually("achieved step of "+release, fmt.Sprintf("step %d, waiting for command True", step), func() (string, error) {
		rel, err := s.get(release)
		if err != nil || rel.Status.AchievedStep == nil || rel.Status.Strategy == nil {
			return "none", err
		}
		return fmt.Sprintf("step %d, waiting for command %s",
			rel.Status.AchievedStep.Step, rel.Status.Strategy.State.WaitingForCommand), nil
	})
}

// steps requests a step.
func (s *fixture) steps(release string, step int32) {
	s.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"targetStep":%d}}`, step)
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: release}}
	s.must("patching targetStep", world.management.Patch(s.ctx, rel, client.RawPatch(types.MergePatchType, patch)))
}

// settles waits until a Release waits for nothing, and no other exists.
func (s *fixture) settles(release string) {
	s.Helper()
	s.eventually("state of "+release, "alone, False False False False", func() (string, error) {
		rel, err := s.get(release)
		if err != nil || rel.Status.Strategy == nil || len(s.app(appName).Status.History) != 1 {
			return "none, or not alone", err
		}
		st := rel.Status.Strategy.State
		return fmt.Sprint("alone, ", st.WaitingForInstallation, " ", st.WaitingForCapacity, " ", st.WaitingForTraffic, " ",
			st.WaitingForCommand), nil
	})
}
