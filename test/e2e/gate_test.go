// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func Test11RolloutOverridingABlock(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		app := s.application("0.0.1", 4, allIn)
		app.Annotations = map[string]string{shipper.RolloutBlockOverrideAnnotation: s.blocks()}
		s.applies(app)
		incumbent := s.Release(0)
		s.Completes(incumbent)
		s.readyPods(incumbent, 4)
		s.Edits(func(app *shipper.Application) { app.Spec.Template.Chart.Version = "0.0.2" })
		contender := s.Release(1)
		s.Completes(contender)
		s.readyPods(contender, 4)
		s.readyPods(incumbent, 0)
	})
}

// Test21RolloutBlockMovingStrategy has a block in the middle of a rollout, which lets it go neither forward nor back.
func Test21RolloutBlockMovingStrategy(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		incumbent, contender := s.vanguardOverAllIn(4)
		s.Steps(contender, 1)
		s.WaitsForCommand(contender, 1)
		block := s.blocks()
		s.saysBlocked(contender, block)
		before := [][]any{s.targets(incumbent), s.targets(contender)}
		s.refused("advancing", s.TryStep(contender, 2), "rollouts blocked by: "+block)
		s.refused("retreating", s.TryStep(contender, 0), "rollouts blocked by: "+block)
		s.refused("editing the application", s.TryEdit(func(app *shipper.Application) {
			app.Spec.Template.Chart.Version = "0.0.1"
		}), "rollouts blocked by: "+block)
		s.WaitsForCommand(contender, 1)
		s.readyPods(contender, 2)
		s.readyPods(incumbent, 2)
		if diff := cmp.Diff(before, [][]any{s.targets(incumbent), s.targets(contender)}); diff != "" {
			s.Errorf("targets moved under a block (-before +after):\n%s", diff)
		}
	})
}

func Test26ReleaseThatOverridesNoMoreIsTakenOffTheList(t *testing.T) {
	onTwoClusters(t, func(s *fixture) { s.overridesNoMore(s.blocks()) })
}

// Test27 is not parallel: a global block stops every other test.
func Test27ReleaseThatOverridesNoMoreIsTakenOffTheGlobalList(t *testing.T) {
	s := begin(t, []string{west, east}, []string{westRegion, eastRegion})
	s.overridesNoMore(s.blocksGlobally())
}

// overrides rolls an Application out that overrides the block, and expects the block's status to list it.
func (s *fixture) overrides(block string) (release string) {
	s.Helper()
	app := s.application("0.0.1", 1, allIn)
	app.Annotations = map[string]string{shipper.RolloutBlockOverrideAnnotation: block}
	s.applies(app)
	release = s.Release(0)
	s.Completes(release)
	s.listed(block, s.Namespace+"/"+appName, s.Namespace+"/"+release)
	return release
}

// overridesNoMore is overrides, after which the Release's override is removed.
func (s *fixture) overridesNoMore(block string) {
	s.Helper()
	release := s.overrides(block)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:""}}}`, shipper.RolloutBlockOverrideAnnotation)
	s.Must("emptying the override", world.Management.Patch(s.Ctx,
		&shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: release}},
		client.RawPatch(types.MergePatchType, patch)))
	s.listed(block, s.Namespace+"/"+appName, "")
}

// TestBlockThatIsDeletedLeavesNoOverride checks that an override does not outlive its block.
func TestBlockThatIsDeletedLeavesNoOverride(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		block := s.blocks()
		release := s.overrides(block)
		s.lifts(block)
		s.Eventually("overrides of Application and Release", "none", func() (string, error) {
			app := &shipper.Application{}
			if err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: appName}, app); err != nil {
				return "", err
			}
			rel, err := s.Get(release)
			left := app.Annotations[shipper.RolloutBlockOverrideAnnotation] + rel.Annotations[shipper.RolloutBlockOverrideAnnotation]
			if left == "" {
				return "none", err
			}
			return left, err
		})
		s.Edits(func(app *shipper.Application) { app.Spec.Template.Chart.Version = "0.0.2" })
		s.Completes(s.Release(1))
	})
}

// deletionOf deletes an object of the test's namespace.
func (s *fixture) deletionOf(object client.Object, name string) error {
	object.SetNamespace(s.Namespace)
	object.SetName(name)
	return s.User.Delete(s.Ctx, object)
}
