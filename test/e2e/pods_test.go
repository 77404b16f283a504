// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/fleet"
)

// stuckHalfway rolls version 0.0.1 out, and 0.0.2 until half of its Pods are requested. Their image cannot be pulled.
func (s *fixture) stuckHalfway() (incumbent, contender string) {
	s.Helper()
	s.applies(s.application("0.0.1", 4, allIn))
	incumbent = s.Release(0)
	s.Completes(incumbent)
	next := s.application("0.0.2", 4, vanguard)
	(*next.Spec.Template.Values)["image"] = map[string]any{"tag": "broken"}
	s.Edits(func(app *shipper.Application) { app.Spec.Template = next.Spec.Template })
	contender = s.Release(1)
	s.pulls(contender, 1)
	s.WaitsForCommand(contender, 0)
	s.Steps(contender, 1)
	s.asked(contender, "50 50")
	return incumbent, contender
}

// pulls waits until each cluster of the fixture has that many running Pods of a Release, and makes their images available.
func (s *fixture) pulls(release string, count int) {
	s.Helper()
	for _, cluster := range s.clusters {
		s.Eventually("pods of "+release+" in "+cluster, fmt.Sprint(count, " run"), func() (string, error) {
			pods := &corev1.PodList{}
			err := world.Clusters[cluster].List(s.Ctx, pods, client.InNamespace(s.Namespace), client.MatchingLabels{shipper.ReleaseLabel: release})
			run := 0
			for i := range pods.Items {
				switch p := &pods.Items[i]; {
				case fleet.PodReady(p):
					run++
				case p.Annotations[imageAnnotation] == "":
					s.Must("pushing an image", s.pushes(cluster, p))
				}
			}
			return fmt.Sprint(run, " run"), err
		})
	}
}

// noPods waits until no cluster has a Pod of the Release, not even one that is being deleted.
func (s *fixture) noPods(release string) {
	s.Helper()
	s.Eventually("pods of "+release, "none", func() (string, error) {
		left := 0
		for _, cluster := range s.clusters {
			pods := &corev1.PodList{}
			if err := world.Clusters[cluster].List(s.Ctx, pods, client.InNamespace(s.Namespace),
				client.MatchingLabels{shipper.ReleaseLabel: release}); err != nil {
				return "", err
			}
			left += len(pods.Items)
		}
		if left > 0 {
			return fmt.Sprint(left, " left"), nil
		}
		return "none", nil
	})
}

// imageAnnotation on a Pod makes its image available: test/fleet/stages/pod-broken.yaml.
const imageAnnotation = "fleet/image"

// pushes makes the image of a Pod available to its kubelet.
func (s *fixture) pushes(cluster string, p *corev1.Pod) error {
	before := p.DeepCopy()
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, imageAnnotation, "pushed")
	return world.Clusters[cluster].Patch(s.Ctx, p, client.MergeFrom(before))
}

// unready marks a Pod as not ready, as its kubelet would.
func (s *fixture) unready(cluster string, p *corev1.Pod) error {
	before := p.DeepCopy()
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady || c.Type == corev1.ContainersReady {
			c.Status, c.LastTransitionTime = corev1.ConditionFalse, metav1.Now()
		}
	}
	for i := range p.Status.ContainerStatuses {
		p.Status.ContainerStatuses[i].Ready = false
	}
	return world.Clusters[cluster].Status().Patch(s.Ctx, p, client.MergeFrom(before))
}

// hasCapacity waits until a Release has the capacity that is requested for it.
func (s *fixture) hasCapacity(release string) {
	s.Helper()
	s.Eventually("the capacity of "+release, "there", func() (string, error) {
		ct := &shipper.CapacityTarget{}
		err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: release}, ct)
		if ct.Status.ObservedGeneration == ct.Generation && shipper.ConditionTrue(ct.Status.Conditions, shipper.TargetReady) {
			return "there", err
		}
		return "not there", err
	})
}

// breaks makes one ready Pod of a Release fail its readiness probe in each cluster of the fixture.
func (s *fixture) breaks(release string) {
	s.Helper()
	for _, cluster := range s.clusters {
		pods := &corev1.PodList{}
		s.Must("listing pods", world.Clusters[cluster].List(s.Ctx, pods, client.InNamespace(s.Namespace),
			client.MatchingLabels{shipper.ReleaseLabel: release}))
		if len(pods.Items) == 0 {
			s.Fatalf("%s has no pods in %s", release, cluster)
		}
		s.Must("breaking a pod", s.unready(cluster, &pods.Items[0]))
	}
}
