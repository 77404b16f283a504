// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/fleet"
)

// patience bounds every wait. On an idle machine each takes less than a tenth of it.
const patience = 60 * time.Second

// appName is the Application of most tests; each has it in a namespace of its own.
const appName = "my-test-app"

// fixture is the environment of one test: a namespace, an Application in it, and the clusters it runs in.
type fixture struct {
	*testing.T
	ctx       context.Context
	namespace string
	app       string
	clusters  []string
	regions   []string
	user      client.Client // the client that writes: the administrator's unless as() made the fixture
}

// onOneAndTwoClusters runs a test on one application cluster, as the original's tests did, and on two.
func onOneAndTwoClusters(t *testing.T, run func(s *fixture)) {
	t.Parallel()
	for name, tc := range map[string]struct{ clusters, regions []string }{
		"one cluster":  {[]string{west}, []string{westRegion}},
		"two clusters": {[]string{west, east}, []string{westRegion, eastRegion}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(begin(t, tc.clusters, tc.regions))
		})
	}
}

// onTwoClusters runs a test on both application clusters.
func onTwoClusters(t *testing.T, run func(s *fixture)) {
	t.Parallel()
	run(begin(t, []string{west, east}, []string{westRegion, eastRegion}))
}

// begin makes a namespace for the test in every cluster.
func begin(t *testing.T, clusters, regions []string) *fixture {
	s := &fixture{T: t, ctx: t.Context(), app: appName, clusters: clusters, regions: regions, user: world.management}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	s.must("creating a namespace", world.management.Create(s.ctx, ns))
	s.namespace = ns.Name
	for _, c := range world.clusters {
		s.must("creating the namespace", c.Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns.Name}}))
	}
	t.Cleanup(func() {
		if t.Failed() {
			s.dump()
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

// application is the Application of the test, for a chart version, replicas and a strategy.
func (s *fixture) application(version string, replicas int, steps strategy) *shipper.Application {
	values := shipper.ChartValues{"replicaCount": int64(replicas)}
	app := &shipper.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.app},
		Spec: shipper.ApplicationSpec{Template: shipper.ReleaseEnvironment{
			Chart:    shipper.Chart{Name: "test-nginx", Version: version, RepoURL: world.charts.URL},
			Values:   &values,
			Strategy: &shipper.RolloutStrategy{},
		}},
	}
	for _, r := range s.regions {
		app.Spec.Template.ClusterRequirements.Regions = append(app.Spec.Template.ClusterRequirements.Regions,
			shipper.RegionRequirement{Name: r})
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

// applies creates the Application.
func (s *fixture) applies(app *shipper.Application) {
	s.Helper()
	s.must("creating the application", s.user.Create(s.ctx, app))
}

// edits changes the Application as a user who read it a moment ago would.
func (s *fixture) edits(edit func(*shipper.Application)) {
	s.Helper()
	s.must("editing the application", s.tryEdit(edit))
}

func (s *fixture) tryEdit(edit func(*shipper.Application), how ...client.PatchOption) error {
	app := &shipper.Application{}
	if err := world.management.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: s.app}, app); err != nil {
		return err
	}
	before := app.DeepCopy()
	edit(app)
	return s.user.Patch(s.ctx, app, client.MergeFrom(before), how...)
}

// release waits until the Application has its n-th release, counting from 0, and names it.
func (s *fixture) release(n int) string {
	s.Helper()
	name := ""
	s.eventually("releases in the application's history", fmt.Sprint(n+1), func() (string, error) {
		app := &shipper.Application{}
		err := world.management.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: s.app}, app)
		if len(app.Status.History) > n {
			name = app.Status.History[n]
		}
		return fmt.Sprint(len(app.Status.History)), err
	})
	return name
}

// get reads a Release.
func (s *fixture) get(release string) (*shipper.Release, error) {
	rel := &shipper.Release{}
	return rel, world.management.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: release}, rel)
}

// completes waits until the release is complete.
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

// waitsForCommand waits until the Release has achieved the step and reports that it waits for the next command.
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
	s.must("patching targetStep", s.tryStep(release, step))
}

func (s *fixture) tryStep(release string, step int32, how ...client.PatchOption) error {
	patch := fmt.Appendf(nil, `{"spec":{"targetStep":%d}}`, step)
	return s.user.Patch(s.ctx, &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: release}},
		client.RawPatch("application/merge-patch+json", patch), how...)
}

// readyPods waits until each cluster of the fixture has exactly that many ready Pods of the Release, and no other cluster has
// any.
func (s *fixture) readyPods(release string, count int) {
	s.Helper()
	want := []string{}
	for _, name := range []string{west, east} {
		if slices.Contains(s.clusters, name) {
			want = append(want, fmt.Sprintf("%s: %d", name, count))
		} else {
			want = append(want, name+": 0")
		}
	}
	s.eventually("ready pods of "+release, strings.Join(want, ", "), func() (string, error) {
		var seen []string
		for _, name := range []string{west, east} {
			ready, err := s.ready(name, release)
			if err != nil {
				return "", err
			}
			seen = append(seen, fmt.Sprintf("%s: %d", name, ready))
		}
		return strings.Join(seen, ", "), nil
	})
}

// ready counts the ready Pods of a Release in a cluster that are not being deleted.
func (s *fixture) ready(cluster, release string) (int, error) {
	pods := &corev1.PodList{}
	err := world.clusters[cluster].List(s.ctx, pods, client.InNamespace(s.namespace), client.MatchingLabels{shipper.ReleaseLabel: release})
	ready := 0
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil && fleet.PodReady(&pods.Items[i]) {
			ready++
		}
	}
	return ready, err
}

// endpoints waits until the chart's Service has, in each cluster of the fixture, that many ready endpoints.
func (s *fixture) endpoints(count int) {
	s.Helper()
	for _, name := range s.clusters {
		s.eventually("endpoints in "+name, fmt.Sprint(count), func() (string, error) {
			ready, err := s.readyEndpoints(name)
			return fmt.Sprint(ready), err
		})
	}
}

// readyEndpoints counts the ready endpoints of the chart's Service in a cluster.
func (s *fixture) readyEndpoints(cluster string) (int, error) {
	in, err := s.endpointPods(cluster)
	return len(in), err
}

// endpointPods lists the Pods behind the ready endpoints of the Service in a cluster, sorted.
func (s *fixture) endpointPods(cluster string) ([]string, error) {
	list := &discoveryv1.EndpointSliceList{}
	err := world.clusters[cluster].List(s.ctx, list, client.InNamespace(s.namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: "test-nginx-prod"})
	var out []string
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready != nil && *e.Conditions.Ready && e.TargetRef != nil {
				out = append(out, e.TargetRef.Name)
			}
		}
	}
	slices.Sort(out)
	return out, err
}

// refused fails unless err is a refusal that says all of words.
func (s *fixture) refused(doing string, err error, words ...string) {
	s.Helper()
	if err == nil {
		s.Fatalf("%s went through; it must be refused", doing)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			s.Fatalf("%s: the refusal does not say %q: %v", doing, word, err)
		}
	}
}

// dump prints the state that helps to find the cause of a failure.
func (s *fixture) dump() {
	ctx := context.Background() // the test's own context has ended
	for _, list := range []client.ObjectList{
		&shipper.ApplicationList{}, &shipper.ReleaseList{}, &shipper.InstallationTargetList{},
		&shipper.CapacityTargetList{}, &shipper.TrafficTargetList{},
	} {
		if err := world.management.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
			s.Logf("listing %T: %v", list, err)
			continue
		}
		b, err := yaml.Marshal(list)
		s.Logf("%T (%v):\n%s", list, err, b)
	}
	s.Logf("reconciler:\n%s", world.pod.Reconciler.Tail())
	s.Logf("webhook:\n%s", world.pod.Webhook.Tail())
}
