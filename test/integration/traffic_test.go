// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestShiftsTrafficBetweenReleases(t *testing.T) {
	t.Parallel()
	s := begin(t, west, east)
	both := []string{west, east}
	for _, name := range []string{"web-1", "web-2"} {
		s.install(name, "test-nginx", "0.0.1", shipper.ChartValues{}, both...)
		s.installed(name)
		s.takeOver(name, false)
		s.scale(name, 100, 4, both...)
		s.scaled(name)
	}
	counted := func(want map[string]int) {
		t.Helper()
		for _, c := range both {
			if diff := cmp.Diff(want, s.endpoints(c, "test-nginx-prod")); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c, diff)
			}
		}
	}
	s.weigh("web-1", 100, both...)
	s.weigh("web-2", 0, both...)
	s.weighed("web-1")
	s.weighed("web-2")
	counted(map[string]int{"web-1": 4})

	s.weigh("web-1", 75, both...)
	s.weigh("web-2", 25, both...)
	tt := s.weighed("web-2")
	s.weighed("web-1")
	counted(map[string]int{"web-1": 4, "web-2": 2})
	if c := tt.Status.Clusters[0]; c.AchievedTraffic != 25 || c.Status != shipper.TrafficStatusSynced {
		t.Errorf("status is %+v", c)
	}

	s.weigh("web-1", 0, both...)
	s.weigh("web-2", 1, both...)
	s.weighed("web-1")
	s.weighed("web-2")
	counted(map[string]int{"web-2": 4})
}

func TestTheManagementClusterMayBeAnApplicationCluster(t *testing.T) {
	t.Parallel()
	s := begin(t)
	it := s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, self)
	s.scale("web-1", 100, 2, self)
	s.weigh("web-1", 1, self)
	s.installed("web-1")
	s.scaled("web-1")
	s.inTraffic(self, 2)
	s.weighed("web-1")
	s.must(s.management.Delete(s.ctx, it))
	s.gone(it)
}

func TestNewPodsOfAReleaseWithTrafficGetIt(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ others uint32 }{"alone": {0}, "shared": {1}}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := begin(t, west)
			s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, west)
			s.installed("web-1")
			s.weigh("web-1", 10, west)
			s.weigh("web-2", tc.others, west)
			s.scale("web-1", 100, 3, west)
			s.scaled("web-1")
			s.inTraffic(west, 3)
			for _, pod := range s.pods(west, "web-1") {
				s.must(world.clusters[west].Delete(s.ctx, &pod))
			}
			s.inTraffic(west, 3)
			s.scale("web-1", 100, 5, west)
			s.inTraffic(west, 5)
			s.weighed("web-1")
			for _, pod := range s.pods(west, "web-1") {
				if _, labelled := pod.Labels[shipper.TrafficStatusLabel]; labelled != (tc.others > 0) {
					t.Errorf("pod %s has the labels %v", pod.Name, pod.Labels)
				}
			}
		})
	}
}

// TestPodsInTrafficGoLast looks at the cost by which Kubernetes picks the Pods to delete when a Release shrinks.
func TestPodsInTrafficGoLast(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	for _, name := range []string{"web-1", "web-2"} {
		s.install(name, "test-nginx", "0.0.1", shipper.ChartValues{}, west)
		s.installed(name)
		s.takeOver(name, false)
		s.weigh(name, 1, west)
	}
	s.scale("web-1", 100, 4, west)
	s.scaled("web-1")
	s.scale("web-2", 100, 1, west)
	s.goLast(west, 3) // of five Pods half are needed, rounded up
	s.weigh("web-1", 0, west)
	s.goLast(west, 0)
}

// goLast waits until n Pods of web-1 are in endpoints, and fails unless just those are the last to be deleted.
func (s *fixture) goLast(cluster string, n int) {
	s.Helper()
	s.soon(fmt.Sprintf("%d pods are not in traffic", n), func() string {
		if got := s.endpoints(cluster, "test-nginx-prod")["web-1"]; got != n {
			return fmt.Sprint(got)
		}
		return ""
	})
	for _, pod := range s.pods(cluster, "web-1") {
		cost, has := pod.Annotations[corev1.PodDeletionCost]
		if in := pod.Labels[shipper.TrafficStatusLabel] == shipper.TrafficEnabled; has != in || has && cost != "1" {
			s.Errorf("pod %s: in traffic %t, cost of deletion %q", pod.Name, in, cost)
		}
	}
}

// inTraffic waits until n Pods of web-1 that are not going are in endpoints.
func (s *fixture) inTraffic(cluster string, n int) {
	s.Helper()
	s.soon(fmt.Sprintf("%d pods are not in traffic", n), func() string {
		got := s.endpoints(cluster, "test-nginx-prod")["web-1"]
		if labelled := len(s.pods(cluster, "web-1")); got != n || labelled != n {
			return fmt.Sprintf("%d of %d", got, labelled)
		}
		return ""
	})
}

func TestTrafficNeedsOneService(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	s.weigh("web-1", 10, west)
	s.notWeighed("web-1", west, shipper.MissingService)
	s.weigh("web-1", 0, west)
	s.weighed("web-1")
}

// notWeighed waits until a target says of a cluster that it is not Ready for a reason, and returns the message.
func (s *fixture) notWeighed(name, cluster, reason string) string {
	s.Helper()
	var message string
	s.soon(fmt.Sprintf("TrafficTarget %s does not say %s of %s", name, reason, cluster), func() string {
		var tt shipper.TrafficTarget
		s.must(s.management.Get(s.ctx, s.key(name), &tt))
		for _, c := range tt.Status.Clusters {
			ready := shipper.FindCondition(c.Conditions, shipper.TargetReady)
			if c.Name == cluster && ready != nil && ready.Reason == reason {
				message = ready.Message
				return ""
			}
		}
		return fmt.Sprintf("%+v", tt.Status)
	})
	return message
}
