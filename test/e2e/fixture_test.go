// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/fleet"
)

// appName is the Application of most tests; each has it in a namespace of its own.
const appName = "my-test-app"

// fixture is one test: its Application, and the clusters that it is to run in.
type fixture struct {
	env.Rollout

	clusters, regions []string
}

// onOneAndTwoClusters runs a test on one application cluster, where the other one has to stay empty, and on two.
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
	return &fixture{Rollout: *world.Begin(t, "e2e-", appName), clusters: clusters, regions: regions}
}

type strategy = env.Strategy

var allIn, vanguard = env.AllIn(), env.Vanguard()

// application is the Application of the test, for a chart version, replicas and a strategy.
func (s *fixture) application(version string, replicas int, steps strategy) *shipper.Application {
	return world.Application(s.Namespace, s.App, version, replicas, steps, s.regions...)
}

// applies creates the Application.
func (s *fixture) applies(app *shipper.Application) {
	s.Helper()
	s.Must("creating the application", s.User.Create(s.Ctx, app, client.FieldOwner("kubectl-create")))
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
	s.Eventually("ready pods of "+release, strings.Join(want, ", "), func() (string, error) {
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
	err := world.Clusters[cluster].List(s.Ctx, pods, client.InNamespace(s.Namespace), client.MatchingLabels{shipper.ReleaseLabel: release})
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
		s.Eventually("endpoints in "+name, fmt.Sprint(count), func() (string, error) {
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
	return s.endpointPodsOf(cluster, "test-nginx-prod")
}

func (s *fixture) endpointPodsOf(cluster, service string) ([]string, error) {
	list := &discoveryv1.EndpointSliceList{}
	err := world.Clusters[cluster].List(s.Ctx, list, client.InNamespace(s.Namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: service})
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
