// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/fleet"
)

const (
	// appName is the Application of every test; each has it in a namespace of its own.
	appName = "super-server"
	// serviceName is the Service of the Application's chart.
	serviceName = "test-nginx-prod"
	// replicas of the Application in each cluster.
	replicas = 4
	// patience bounds every wait.
	patience = 60 * time.Second
)

// fixture is one namespace with one Application, whose rollout starts in one management cluster and goes on in another.
type fixture struct {
	*testing.T
	ctx        context.Context
	namespace  string
	management *management // the current one
	guards     []*guard
	backup     *backup
}

// begin creates a namespace in every cluster. The fixture lasts as long as t, also when subtests use it.
func begin(t *testing.T) *fixture {
	s := &fixture{T: t, ctx: t.Context(), management: &world.lost}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "restore-"}}
	s.must("creating a namespace", world.lost.Create(s.ctx, ns))
	s.namespace = ns.Name
	s.must("creating the namespace", world.new.Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns.Name}}))
	for name, c := range world.clusters {
		s.must("creating the namespace", c.Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns.Name}}))
		g, err := newGuard(s.ctx, name, s.namespace)
		s.must("watching "+name, err)
		s.guards = append(s.guards, g)
	}
	return s
}

// on is the same fixture for a subtest. When the subtest fails, it prints the state that helps to find the cause.
func (s *fixture) on(t *testing.T) *fixture {
	sub := *s
	sub.T = t
	t.Cleanup(func() {
		if t.Failed() {
			sub.dump()
		}
	})
	return &sub
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
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		seen, err := look()
		if err == nil && seen == expected {
			return
		}
		select {
		case <-deadline.C:
			s.Fatalf("%s, within %s:\n  expected: %s\n  seen:     %s (error: %v)", what, patience, expected, seen, err)
		case <-tick.C:
		}
	}
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

// environment returns a chart's version with a strategy, in all clusters; a different note makes a different environment.
func environment(note, version string, steps strategy) shipper.ReleaseEnvironment {
	values := shipper.ChartValues{"replicaCount": int64(replicas), "note": note}
	env := shipper.ReleaseEnvironment{
		Chart:    shipper.Chart{Name: "test-nginx", Version: version, RepoURL: world.charts.URL},
		Values:   &values,
		Strategy: &shipper.RolloutStrategy{},
	}
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		env.ClusterRequirements.Regions = append(env.ClusterRequirements.Regions, shipper.RegionRequirement{Name: clusters[name]})
	}
	for _, step := range steps {
		env.Strategy.Steps = append(env.Strategy.Steps, shipper.RolloutStrategyStep{
			Name:     step.name,
			Capacity: shipper.RolloutStrategyStepValue{Incumbent: step.ci, Contender: step.cc},
			Traffic:  shipper.RolloutStrategyStepValue{Incumbent: step.trafficI, Contender: step.trac},
		})
	}
	return env
}

// applies creates the Application.
func (s *fixture) applies(env shipper.ReleaseEnvironment) {
	s.Helper()
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: appName}}
	app.Spec.Template = env
	s.must("creating the application", s.management.Create(s.ctx, app))
}

// edits replaces the Application's template.
func (s *fixture) edits(env shipper.ReleaseEnvironment) {
	s.Helper()
	app := &shipper.Application{}
	s.must("reading the application", s.management.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: appName}, app))
	before := app.DeepCopy()
	app.Spec.Template = env
	s.must("editing the application", s.management.Patch(s.ctx, app, client.MergeFrom(before)))
}

// release waits until the Application has its n-th Release, counting from 0, and names it.
func (s *fixture) release(n int) string {
	s.Helper()
	name := ""
	s.eventually("releases in the application's history", fmt.Sprint(n+1), func() (string, error) {
		app := &shipper.Application{}
		err := s.management.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: appName}, app)
		if len(app.Status.History) > n {
			name = app.Status.History[n]
		}
		return fmt.Sprint(len(app.Status.History)), err
	})
	return name
}

func (s *fixture) get(release string) (*shipper.Release, error) {
	rel := &shipper.Release{}
	return rel, s.management.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: release}, rel)
}

// completes waits until a Release is complete.
func (s *fixture) completes(release string) {
	s.Helper()
	s.eventually("completion of "+release, "True", func() (string, error) {
		rel, err := s.get(release)
		if shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseComplete) {
			return "True", err
		}
		return fmt.Sprintf("%+v", rel.Status.Conditions), err
	})
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
	s.must("patching targetStep", s.management.Patch(s.ctx, rel, client.RawPatch(types.MergePatchType, patch)))
}

// pods waits until each cluster has exactly that many ready Pods of a Release, and the Service selects serving of them.
func (s *fixture) pods(release string, ready, serving int) {
	s.Helper()
	for name, c := range world.clusters {
		s.eventually("pods of "+release+" in "+name, fmt.Sprintf("%d ready, %d in traffic", ready, serving), func() (string, error) {
			list, service := &corev1.PodList{}, &corev1.Service{}
			err := errors.Join(
				c.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: serviceName}, service),
				c.List(s.ctx, list, client.InNamespace(s.namespace), client.MatchingLabels{shipper.ReleaseLabel: release}),
			)
			chosen := labels.SelectorFromSet(service.Spec.Selector)
			count, enabled := 0, 0
			for i := range list.Items {
				if pod := &list.Items[i]; pod.DeletionTimestamp == nil && fleet.PodReady(pod) {
					count++
					if chosen.Matches(labels.Set(pod.Labels)) {
						enabled++
					}
				}
			}
			return fmt.Sprintf("%d ready, %d in traffic", count, enabled), err
		})
	}
}

// scheduled waits until the targets of a Release exist and are Ready without a message.
func (s *fixture) scheduled(release string) {
	s.Helper()
	s.eventually("targets of "+release, "True True True", func() (string, error) {
		it, ct, tt := &shipper.InstallationTarget{}, &shipper.CapacityTarget{}, &shipper.TrafficTarget{}
		for _, target := range []client.Object{it, ct, tt} {
			if err := s.management.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: release}, target); err != nil {
				return "", err
			}
		}
		var seen []string
		for _, conditions := range [][]shipper.Condition{it.Status.Conditions, ct.Status.Conditions, tt.Status.Conditions} {
			if c := shipper.FindCondition(conditions, shipper.TargetReady); c != nil {
				seen = append(seen, strings.TrimSpace(string(c.Status)+" "+c.Message))
			}
		}
		return strings.Join(seen, " "), nil
	})
}

// dump prints the state that helps to find the cause of a failure.
func (s *fixture) dump() {
	ctx := context.Background() // the test's own context has ended
	for _, list := range []client.ObjectList{
		&shipper.ApplicationList{}, &shipper.ReleaseList{}, &shipper.InstallationTargetList{},
		&shipper.CapacityTargetList{}, &shipper.TrafficTargetList{},
	} {
		if err := s.management.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
			s.Logf("listing %T: %v", list, err)
			continue
		}
		b, err := yaml.Marshal(list)
		s.Logf("%T (%v):\n%s", list, err, b)
	}
	s.Logf("reconciler:\n%s", s.management.pod.Reconciler.Tail())
	s.Logf("webhook:\n%s", s.management.pod.Webhook.Tail())
}
