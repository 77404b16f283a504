// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func Test02RejectModificationOfReleaseEnvironment(t *testing.T) {
	onOneAndTwoClusters(t, func(s *story) {
		s.applies(s.application("0.0.1", 4, allIn))
		name := s.release(0)
		s.completes(name)

		rel, err := s.get(name)
		s.must("reading the release", err)
		rel.Spec.Environment.Chart.Name = "another"
		s.refused("changing the environment", world.management.Update(s.ctx, rel), "spec.environment", "Application")
	})
}

func Test03RejectDeletionOfReleaseUnderBlock(t *testing.T) {
	onOneAndTwoClusters(t, func(s *story) {
		s.applies(s.application("0.0.1", 4, allIn))
		name := s.release(0)
		s.completes(name)
		block := s.blocks()
		s.refused("deleting the release", s.deletionOf(&shipper.Release{}, name), "rollouts blocked by: "+block)
		s.readyPods(name, 4)
	})
}

func Test04RejectDeletionOfApplicationUnderBlock(t *testing.T) {
	onOneAndTwoClusters(t, func(s *story) {
		s.applies(s.application("0.0.1", 4, allIn))
		name := s.release(0)
		s.completes(name)
		block := s.blocks()
		s.refused("deleting the application", s.deletionOf(&shipper.Application{}, appName), "rollouts blocked by: "+block)
		s.readyPods(name, 4)
	})
}

func Test05NewApplicationOverridingABlock(t *testing.T) {
	onOneAndTwoClusters(t, func(s *story) {
		block := s.blocks()
		app := s.application("0.0.1", 4, allIn)
		app.Annotations = map[string]string{shipper.RolloutBlockOverrideAnnotation: block}
		s.applies(app)
		rel := s.release(0)
		s.completes(rel)
		s.readyPods(rel, 4)
	})
}

func Test06BlockANewApplication(t *testing.T) {
	onOneAndTwoClusters(t, func(s *story) {
		block := s.blocks()
		s.refused("creating the application", world.management.Create(s.ctx, s.application("0.0.1", 1, allIn)),
			"rollouts blocked by: "+block, "Simulate rollout block", "testUser")
	})
}

func Test07NewApplicationOverridingAMissingBlock(t *testing.T) {
	onOneAndTwoClusters(t, func(s *story) {
		app := s.application("0.0.1", 1, allIn)
		app.Annotations = map[string]string{shipper.RolloutBlockOverrideAnnotation: s.namespace + "/no-such-block"}
		s.refused("creating the application", world.management.Create(s.ctx, app),
			shipper.RolloutBlockOverrideAnnotation, s.namespace+"/no-such-block")
	})
}

// deletionOf deletes an object of the test's namespace.
func (s *story) deletionOf(object client.Object, name string) error {
	object.SetNamespace(s.namespace)
	object.SetName(name)
	return world.management.Delete(s.ctx, object)
}
