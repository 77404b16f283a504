// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestScalesInEveryCluster(t *testing.T) {
	t.Parallel()
	s := begin(t, west, east)
	s.scale("web-1", 50, 5, west, east)
	s.notScaled("web-1", west, shipper.MissingDeployment)
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{"replicaCount": 5}, west, east)
	ct := s.scaled("web-1")
	type counts struct {
		Name               string
		Available, Percent int32
	}
	var got []counts
	for _, c := range ct.Status.Clusters {
		got = append(got, counts{c.Name, c.AvailableReplicas, c.AchievedPercent})
	}
	if diff := cmp.Diff([]counts{{east, 3, 60}, {west, 3, 60}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	s.scale("web-1", 100, 5, west, east)
	s.scaled("web-1")
	s.scale("web-1", 0, 5, west, east)
	s.scaled("web-1")
	if pods := s.pods(west, "web-1"); len(pods) != 0 {
		t.Errorf("%d pods are left", len(pods))
	}
}

// TestADeploymentThatWasGoneIsToldToBeThere looks at what people see of it.
func TestADeploymentThatWasGoneIsToldToBeThere(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	s.scale("web-1", 100, 2, west)
	s.notScaled("web-1", west, shipper.MissingDeployment)
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{"replicaCount": 2}, west)
	s.scaled("web-1")
	// Times of conditions are in seconds.
	s.soon("a second has passed", func() string {
		var ct shipper.CapacityTarget
		s.must(s.management.Get(s.ctx, s.key("web-1"), &ct))
		known := shipper.FindCondition(ct.Status.Clusters[0].Conditions, shipper.TargetOperational).LastTransitionTime
		if time.Since(known.Time) > 2*time.Second {
			return ""
		}
		return "it is not over"
	})
	missing := `cluster "west": [Ready True] -> [Ready False MissingDeployment`
	tells := func(want string) {
		s.Helper()
		s.soon("the CapacityTarget does not report "+want, func() string {
			told := strings.Join(s.toldIn(), "\n")
			if strings.Contains(told, want) {
				return ""
			}
			return told
		})
	}
	s.must(world.clusters[west].Delete(s.ctx, s.deployment(west, "web-1")))
	tells(missing)
	tells("found 0] -> [Ready ")
	s.scaled("web-1")
}

// TestADeploymentDeletedWithoutItsPodsKeepsThem has a user do so. Later writes of the Deployment leave the number of Pods, too.
func TestADeploymentDeletedWithoutItsPodsKeepsThem(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{"replicaCount": 3}, west)
	s.scale("web-1", 100, 3, west)
	s.scaled("web-1")
	before := s.podUIDs(west, "web-1")
	deleted := s.deployment(west, "web-1")
	s.must(world.clusters[west].Delete(s.ctx, deleted, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	s.soon("there is no other Deployment", func() string {
		now := &appsv1.Deployment{}
		if !s.find(west, deleted.Name, now) || now.UID == deleted.UID || now.Status.AvailableReplicas != 3 {
			return fmt.Sprint(now.UID, now.Status)
		}
		return ""
	})
	now := s.deployment(west, "web-1")
	s.meddle(west, now, func() { now.Annotations[shipper.InstalledDigestAnnotation] = "another" })
	s.soon("it is not written again", func() string {
		if now = s.deployment(west, "web-1"); now.Annotations[shipper.InstalledDigestAnnotation] == "another" {
			return "another"
		}
		return ""
	})
	if *now.Spec.Replicas != 3 {
		t.Errorf("written again, it has %d replicas", *now.Spec.Replicas)
	}
	if diff := cmp.Diff(before, s.podUIDs(west, "web-1")); diff != "" {
		t.Errorf("its Pods are (-want +got):\n%s", diff)
	}
}

// podUIDs are those of the Pods of a Release, by name.
func (s *fixture) podUIDs(cluster, release string) map[string]types.UID {
	s.Helper()
	out := map[string]types.UID{}
	for _, pod := range s.pods(cluster, release) {
		out[pod.Name] = pod.UID
	}
	return out
}

func TestSaysWhyPodsAreNotReady(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{"image": map[string]any{"tag": "broken"}}, west)
	s.installed("web-1")
	s.scale("web-1", 100, 7, west)
	want := `7/7: 7x"test-nginx" containers with [ImagePullBackOff]`
	s.soon("the message is not "+want, func() string {
		if message := s.notScaled("web-1", west, shipper.PodsNotReady); message != want {
			return message
		}
		return ""
	})
	var ct shipper.CapacityTarget
	s.must(s.management.Get(s.ctx, s.key("web-1"), &ct))
	if n := len(ct.Status.Clusters[0].SadPods); n != shipper.MaxSadPods {
		t.Errorf("%d pods are described, want %d", n, shipper.MaxSadPods)
	}
}

// notScaled waits until a target says of a cluster that it is not Ready for a reason, and returns the message.
func (s *fixture) notScaled(name, cluster, reason string) string {
	s.Helper()
	var message string
	s.soon(fmt.Sprintf("CapacityTarget %s does not say %s of %s", name, reason, cluster), func() string {
		var ct shipper.CapacityTarget
		s.must(s.management.Get(s.ctx, s.key(name), &ct))
		for _, c := range ct.Status.Clusters {
			ready := shipper.FindCondition(c.Conditions, shipper.TargetReady)
			if c.Name == cluster && ready != nil && ready.Reason == reason {
				message = ready.Message
				return ""
			}
		}
		return fmt.Sprintf("%+v", ct.Status)
	})
	return message
}
