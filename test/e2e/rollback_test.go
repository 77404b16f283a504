// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/fleet"
)

// TestRollbacksGoByStepsOrAtOnce rolls back by steps, rolls forward again half way, rolls back at once, and to the current Release.
func TestRollbacksGoByStepsOrAtOnce(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		first, second := s.twoReleases(vanguard)

		s.says("rolls out the environment of release "+first+", test-nginx 0.0.1", "rollout", "rollback", s.App)
		third := s.releaseAfter(second)
		s.WaitsForCommand(third, 0)
		s.saysRolledBack(third, first)
		s.readyPods(second, 4)
		s.readyPods(third, 1)
		s.Steps(third, 1)
		s.WaitsForCommand(third, 1)

		s.says("rolls out the environment of release "+second+", test-nginx 0.0.2", "rollout", "rollback", s.App, "--to", second)
		fourth := s.releaseAfter(third)
		s.WaitsForCommand(fourth, 0)
		s.saysRolledBack(fourth, second)
		s.Steps(fourth, 2)
		s.Completes(fourth)
		s.isGone(third)
		s.readyPods(fourth, 4)
		s.readyPods(second, 0)

		s.says("rolls out the environment of release "+first, "rollout", "rollback", s.App, "--to", first, "--immediate")
		fifth := s.releaseAfter(fourth)
		s.Completes(fifth) // it did not move
		s.readyPods(fifth, 4)
		s.readyPods(fourth, 0)
		s.endpoints(4)

		s.says("has that environment already, in release "+fifth+": nothing is rolled out", "rollout", "rollback", s.App, "--to", first)
		s.says("rolls out the environment of release "+fourth, "rollout", "rollback", s.App, "--to-generation", "3")
		s.WaitsForCommand(s.releaseAfter(fifth), 0)
	})
}

// TestNobodyGoesBackToWhatWasTrimmed requests a Release that was trimmed from the history.
func TestNobodyGoesBackToWhatWasTrimmed(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		app := s.application("0.0.1", 1, allIn)
		app.Spec.RevisionHistoryLimit = ptr.To[int32](1)
		s.applies(app)
		first := s.Release(0)
		s.Completes(first)
		newest := first
		for _, version := range []string{"0.0.2", "0.0.1"} {
			s.Edits(func(app *shipper.Application) { app.Spec.Template.Chart.Version = version })
			newest = s.releaseAfter(newest)
			s.Completes(newest)
		}
		s.isGone(first)
		s.Eventually("the webhook's response", "422", func() (string, error) { // its cache may still have the Release
			err := s.TryEdit(func(app *shipper.Application) { app.Spec.RollbackTo = &shipper.RollbackTo{Release: first} }, client.DryRunAll)
			if !apierrors.IsInvalid(err) {
				return fmt.Sprint(err), nil
			}
			return "422", nil
		})
		_, err := s.shipperctl("rollout", "rollback", s.App, "--to", first)
		s.refused("going back to it", err,
			`spec.rollbackTo.release: Not found: "`+first+`"`, "the application has no such release; it has "+newest)
		_, err = s.shipperctl("rollout", "rollback", s.App, "--to-generation", "7")
		s.refused("going back to none", err, "spec.rollbackTo.generation: Not found: 7")
	})
}

// TestARollbackPassesOnlyBlocksThatLetItPass meets a block that allows nothing, then one that allows rollbacks.
func TestARollbackPassesOnlyBlocksThatLetItPass(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		first, second := s.twoReleases(vanguard)
		block := s.blocks()
		for _, flags := range [][]string{nil, {"--immediate"}} {
			_, err := s.shipperctl(append([]string{"rollout", "rollback", s.App}, flags...)...)
			s.forbidden("rolling back", err, "rollouts blocked by: "+block)
		}
		s.templateIs("0.0.2")
		s.lifts(block)

		s.blocksWith(func(spec *shipper.RolloutBlockSpec) {
			spec.Allow = []shipper.RolloutBlockChange{shipper.RolloutBlockRollback}
		})
		s.says("rolls out the environment of release "+first, "rollout", "rollback", s.App, "--immediate")
		back := s.releaseAfter(second)
		s.Completes(back)
		s.saysRolledBack(back, first)
		s.readyPods(back, 4)
		s.readyPods(second, 0)
		s.forbidden("rolling something else out", s.TryEdit(more), "lets pass: Rollback")
	})
}

// TestAManifestRollsBackOnce applies a manifest with a rollback repeatedly, as pipelines do.
func TestAManifestRollsBackOnce(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		first, second := s.twoReleases(allIn)
		app := s.application("0.0.2", 4, allIn)
		app.Spec.RollbackTo = &shipper.RollbackTo{}
		manifest := s.manifest(app)
		s.kubectlSays("this rolls back from Release "+second+" to the environment of "+first, "apply", "-f", manifest)
		back := s.releaseAfter(second)
		s.Completes(back)
		for _, how := range []string{"--server-side=false", "--server-side=false", "--server-side"} {
			s.kubectlSays("this was rolled back to Release "+first+" already: nothing is done",
				"apply", "-f", manifest, how, "--force-conflicts="+fmt.Sprint(how == "--server-side"))
		}
		s.templateIs("0.0.1")
		rel, err := s.Get(back)
		s.Must("reading the release", err)
		s.Completes(back)
		if n := rel.Annotations[shipper.ReleaseGenerationAnnotation]; n != "2" {
			t.Errorf("the release is of generation %s", n)
		}

		app.Spec.RollbackTo = nil
		s.kubectlSays("this makes Release ", "apply", "-f", s.manifest(app))
		s.Completes(s.releaseAfter(back))
		s.templateIs("0.0.2")
	})
}

// twoReleases rolls out 0.0.1 and then 0.0.2, of four replicas each, and returns their Releases.
func (s *fixture) twoReleases(steps strategy) (first, second string) {
	s.Helper()
	s.applies(s.application("0.0.1", 4, steps))
	first = s.Release(0)
	s.Steps(first, int32(len(steps)-1))
	s.Completes(first)
	s.Edits(func(app *shipper.Application) { app.Spec.Template.Chart.Version = "0.0.2" })
	second = s.Release(1)
	s.Steps(second, int32(len(steps)-1))
	s.Completes(second)
	return first, second
}

// isGone waits until the Release is gone.
func (s *fixture) isGone(release string) {
	s.Helper()
	s.Eventually("release "+release, "gone", func() (string, error) {
		_, err := s.Get(release)
		if apierrors.IsNotFound(err) {
			return "gone", nil
		}
		return "there", err
	})
}

// kubectlSays runs kubectl in the namespace, and fails unless its output contains words.
func (s *fixture) kubectlSays(words string, args ...string) {
	s.Helper()
	kubectl, err := fleet.Kubectl()
	s.Must("finding kubectl", err)
	cmd := exec.CommandContext(s.Ctx, kubectl, append(args, "-n", s.Namespace, "--kubeconfig", world.Fleet.Management.Kubeconfig)...)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), words) {
		s.Fatalf("kubectl %s: %v; it says nothing of %q:\n%s", strings.Join(args, " "), err, words, out)
	}
}
