// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/fleet"
)

const (
	// appName is the Application of every test; each has it in a namespace of its own.
	appName = "super-server"
	// serviceName is the Service of the Application's chart.
	serviceName = "test-nginx-prod"
	// replicas of the Application in each cluster.
	replicas = 4
)

// fixture is one test in a namespace of all clusters.
type fixture struct {
	env.Rollout

	management *management // the current one
	guards     []*guard
	backup     *backup
}

// begin makes a namespace for the test in every cluster, and watches it in the application clusters.
func begin(t *testing.T) *fixture {
	s := &fixture{Rollout: *world.lost.Begin(t, "restore-", appName), management: &world.lost}
	s.Must("creating the namespace", world.new.Management.Create(s.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}))
	for name := range world.lost.Clusters {
		g, err := newGuard(s.Ctx, name, s.Namespace)
		s.Must("watching "+name, err)
		s.guards = append(s.guards, g)
	}
	return s
}

// moves has the test go on in another management cluster.
func (s *fixture) moves(m *management) {
	s.management, s.Env, s.User = m, m.Env, m.Management
}

// on is the same fixture for a subtest. When the subtest fails, it prints the state that helps to find the cause.
func (s *fixture) on(t *testing.T) *fixture {
	sub := *s
	sub.T = t
	t.Cleanup(func() {
		if t.Failed() {
			sub.Dump()
		}
	})
	return &sub
}

var allIn, vanguard = env.AllIn(), env.Vanguard()

// environment returns a chart's version with a strategy, in all clusters; a different note makes a different environment.
func environment(note, version string, steps env.Strategy) shipper.ReleaseEnvironment {
	template := world.lost.Application("", "", version, replicas, steps, slices.Sorted(maps.Values(clusters))...).Spec.Template
	(*template.Values)["note"] = note
	return template
}

// applies creates the Application.
func (s *fixture) applies(template shipper.ReleaseEnvironment) {
	s.Helper()
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: appName}}
	app.Spec.Template = template
	s.Must("creating the application", s.User.Create(s.Ctx, app))
}

// edits replaces the Application's template.
func (s *fixture) edits(template shipper.ReleaseEnvironment) {
	s.Helper()
	s.Edits(func(app *shipper.Application) { app.Spec.Template = template })
}

// Completes waits until a Release is complete. After a restore its condition may say how that was found out.
func (s *fixture) Completes(release string) {
	s.Helper()
	s.Eventually("completion of "+release, "True", func() (string, error) {
		rel, err := s.Get(release)
		if shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseComplete) {
			return "True", err
		}
		return fmt.Sprintf("%+v", rel.Status.Conditions), err
	})
}

// pods waits until each cluster has exactly that many ready Pods of a Release, and the Service selects serving of them.
func (s *fixture) pods(release string, ready, serving int) {
	s.Helper()
	for name, c := range world.lost.Clusters {
		s.Eventually("pods of "+release+" in "+name, fmt.Sprintf("%d ready, %d in traffic", ready, serving), func() (string, error) {
			list, service := &corev1.PodList{}, &corev1.Service{}
			err := errors.Join(
				c.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: serviceName}, service),
				c.List(s.Ctx, list, client.InNamespace(s.Namespace), client.MatchingLabels{shipper.ReleaseLabel: release}),
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
	s.Eventually("targets of "+release, "True True True", func() (string, error) {
		it, ct, tt := &shipper.InstallationTarget{}, &shipper.CapacityTarget{}, &shipper.TrafficTarget{}
		for _, target := range []client.Object{it, ct, tt} {
			if err := s.management.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: release}, target); err != nil {
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
