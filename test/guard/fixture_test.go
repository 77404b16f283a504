// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/pod"
)

// appName is the Application of every test; each has it in a namespace of its own.
const appName = "web"

// fixture is one test.
type fixture struct {
	env.Rollout
}

// begin makes a namespace for the test in both clusters.
func begin(t *testing.T, name string) *fixture {
	t.Helper()
	return &fixture{*world.Begin(t, name, appName)}
}

// applies makes the Application, or changes it: four Pods, rolled out in three steps.
func (s *fixture) applies(version string) {
	s.Helper()
	app := world.Application(s.Namespace, appName, version, 4, env.Vanguard(), region)
	live := &shipper.Application{}
	err := world.Management.Get(s.Ctx, client.ObjectKeyFromObject(app), live)
	if client.IgnoreNotFound(err) != nil {
		s.Fatal(err)
	}
	if err != nil {
		s.Must("creating the application", world.Management.Create(s.Ctx, app))
		return
	}
	before := live.DeepCopy()
	live.Spec.Template = app.Spec.Template
	s.Must("editing the application", world.Management.Patch(s.Ctx, live, client.MergeFrom(before)))
}

// goesTo asks for a step and waits until it is achieved.
func (s *fixture) goesTo(release string, step int32) {
	s.Helper()
	s.Steps(release, step)
	s.Eventually("achieved step of "+release, fmt.Sprintf("%d, StrategyExecuted True", step), func() (string, error) {
		rel := &shipper.Release{}
		err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: release}, rel)
		if err != nil || rel.Status.AchievedStep == nil {
			return "none", err
		}
		executed := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseStrategyExecuted)
		if executed == nil {
			return "no condition", nil
		}
		return fmt.Sprintf("%d, StrategyExecuted %s", rel.Status.AchievedStep.Step, executed.Status), nil
	})
}

// has waits until the release has so many ready Pods.
func (s *fixture) has(release string, count int) {
	s.Helper()
	s.Eventually("ready pods of "+release, fmt.Sprint(count), func() (string, error) {
		ready := 0
		for _, p := range s.pods(release) {
			if p.DeletionTimestamp == nil && fleet.PodReady(&p) {
				ready++
			}
		}
		return fmt.Sprint(ready), nil
	})
}

// serves waits until the Service has so many ready endpoints.
func (s *fixture) serves(count int) {
	s.Helper()
	s.Eventually("endpoints", fmt.Sprint(count), func() (string, error) {
		list := &discoveryv1.EndpointSliceList{}
		err := world.cluster.List(s.Ctx, list, client.InNamespace(s.Namespace),
			client.MatchingLabels{discoveryv1.LabelServiceName: "test-nginx-prod"})
		ready := 0
		for _, slice := range list.Items {
			for _, e := range slice.Endpoints {
				if e.Conditions.Ready != nil && *e.Conditions.Ready {
					ready++
				}
			}
		}
		return fmt.Sprint(ready), err
	})
}

// pods are those of a release.
func (s *fixture) pods(release string) []corev1.Pod {
	s.Helper()
	list := &corev1.PodList{}
	s.Must("listing pods", world.cluster.List(s.Ctx, list, client.InNamespace(s.Namespace),
		client.MatchingLabels{shipper.ReleaseLabel: release}))
	return list.Items
}

// deployment is that of a release.
func (s *fixture) deployment(release string) *appsv1.Deployment {
	s.Helper()
	return s.read(&appsv1.Deployment{}, release+"-test-nginx").(*appsv1.Deployment)
}

// service is the one that traffic is shifted on.
func (s *fixture) service() *corev1.Service {
	s.Helper()
	return s.read(&corev1.Service{}, "test-nginx-prod").(*corev1.Service)
}

// read reads an object of the story's namespace in the application cluster.
func (s *fixture) read(into client.Object, name string) client.Object {
	s.Helper()
	s.Must("reading "+name, world.cluster.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, into))
	return into
}

// rolledOut brings the first release to its end and names it.
func (s *fixture) rolledOut() string {
	s.Helper()
	s.applies("0.0.1")
	release := s.Release(0)
	s.goesTo(release, 2)
	s.has(release, 4)
	s.serves(4)
	return release
}

// as is the application cluster's client of a user by name and groups.
func as(t *testing.T, name string, groups ...string) client.Client {
	t.Helper()
	config := rest.CopyConfig(world.Fleet.Applications[0].Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: append(groups, "system:authenticated")}
	c, err := pod.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// guarded reports whether an error is the guard's.
func guarded(err error) bool {
	return err != nil && strings.Contains(err.Error(), ".guard.shipper.booking.com' denied request: ")
}
