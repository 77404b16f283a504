// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/pod"
)

// patience bounds every wait. Nothing here takes a tenth of it on an idle machine.
const patience = 60 * time.Second

// appName is the Application of every test; each has it in a namespace of its own.
const appName = "web"

// fixture is one test's view of the world: a namespace in both clusters.
type fixture struct {
	*testing.T
	ctx       context.Context
	namespace string
}

// begin makes a namespace for the test, with this name or one that starts with it.
func begin(t *testing.T, name string) *fixture {
	t.Helper()
	s := &fixture{T: t, ctx: t.Context()}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if strings.HasSuffix(name, "-") {
		ns.ObjectMeta = metav1.ObjectMeta{GenerateName: name}
	}
	s.must("creating a namespace", world.management.Create(s.ctx, ns))
	s.namespace = ns.Name
	s.must("creating the namespace", world.cluster.Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns.Name}}))
	t.Cleanup(func() {
		if t.Failed() && world.pod != nil {
			t.Logf("reconciler:\n%s", world.pod.Reconciler.Tail())
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

// eventually looks until expected is seen, or fails with both.
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

// applies makes the Application, or changes it: four Pods, rolled out in three steps.
func (s *fixture) applies(version string) {
	s.Helper()
	values := shipper.ChartValues{"replicaCount": int64(4)}
	app := &shipper.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: appName},
		Spec: shipper.ApplicationSpec{Template: shipper.ReleaseEnvironment{
			Chart:               shipper.Chart{Name: "test-nginx", Version: version, RepoURL: world.charts.URL},
			Values:              &values,
			ClusterRequirements: shipper.ClusterRequirements{Regions: []shipper.RegionRequirement{{Name: region}}},
			Strategy: &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{
				step("staging", 1, 0), step("50/50", 50, 50), step("full on", 100, 100),
			}},
		}},
	}
	live := &shipper.Application{}
	err := world.management.Get(s.ctx, client.ObjectKeyFromObject(app), live)
	if client.IgnoreNotFound(err) != nil {
		s.Fatal(err)
	}
	if err != nil {
		s.must("creating the application", world.management.Create(s.ctx, app))
		return
	}
	before := live.DeepCopy()
	live.Spec.Template = app.Spec.Template
	s.must("editing the application", world.management.Patch(s.ctx, live, client.MergeFrom(before)))
}

// step is a step that leaves the rest to the incumbent, and one Pod more at the beginning.
func step(name string, capacity, traffic int32) shipper.RolloutStrategyStep {
	rest := 100 - capacity
	if capacity == 1 {
		rest = 100
	}
	return shipper.RolloutStrategyStep{
		Name:     name,
		Capacity: shipper.RolloutStrategyStepValue{Contender: capacity, Incumbent: rest},
		Traffic:  shipper.RolloutStrategyStepValue{Contender: traffic, Incumbent: 100 - traffic},
	}
}

// release waits until the Application has its n-th release, counting from 0, and names it.
func (s *fixture) release(n int) string {
	s.Helper()
	name := ""
	s.eventually("releases in the application's history", fmt.Sprint(n+1), func() (string, error) {
		app := &shipper.Application{}
		err := world.management.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: appName}, app)
		if len(app.Status.History) > n {
			name = app.Status.History[n]
		}
		return fmt.Sprint(len(app.Status.History)), err
	})
	return name
}

// goesTo asks for a step and waits until it is achieved.
func (s *fixture) goesTo(release string, step int32) {
	s.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"targetStep":%d}}`, step)
	s.must("patching targetStep", world.management.Patch(s.ctx,
		&shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: release}},
		client.RawPatch("application/merge-patch+json", patch)))
	s.eventually("achieved step of "+release, fmt.Sprintf("%d, StrategyExecuted True", step), func() (string, error) {
		rel := &shipper.Release{}
		err := world.management.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: release}, rel)
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
	s.eventually("ready pods of "+release, fmt.Sprint(count), func() (string, error) {
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
	s.eventually("endpoints", fmt.Sprint(count), func() (string, error) {
		list := &discoveryv1.EndpointSliceList{}
		err := world.cluster.List(s.ctx, list, client.InNamespace(s.namespace),
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
	s.must("listing pods", world.cluster.List(s.ctx, list, client.InNamespace(s.namespace),
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
	s.must("reading "+name, world.cluster.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, into))
	return into
}

// rolledOut brings the first release to its end and names it.
func (s *fixture) rolledOut() string {
	s.Helper()
	s.applies("0.0.1")
	release := s.release(0)
	s.goesTo(release, 2)
	s.has(release, 4)
	s.serves(4)
	return release
}

// as is the application cluster's client of a user by name and groups.
func as(t *testing.T, name string, groups ...string) client.Client {
	t.Helper()
	config := rest.CopyConfig(world.fleet.Applications[0].Config)
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
