// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/root"
)

// shipperctl runs a command of shipperctl and returns its output.
func (s *fixture) shipperctl(args ...string) (string, error) {
	s.Helper()
	var out bytes.Buffer
	cmd := root.NewCommand(&out)
	cmd.SetArgs(append(args, "--kubeconfig", world.Fleet.Management.Kubeconfig, "-n", s.Namespace))
	err := cmd.ExecuteContext(s.Ctx)
	return out.String(), err
}

// says runs a command of shipperctl and fails unless its output contains words.
func (s *fixture) says(words string, args ...string) {
	s.Helper()
	out, err := s.shipperctl(args...)
	s.Must("shipperctl "+strings.Join(args, " "), err)
	if !strings.Contains(out, words) {
		s.Errorf("shipperctl %s says nothing of %q:\n%s", strings.Join(args, " "), words, out)
	}
}

// manifest writes an Application into a file.
func (s *fixture) manifest(app *shipper.Application) string {
	s.Helper()
	app.SetGroupVersionKind(shipper.GroupVersion.WithKind("Application"))
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(app)
	s.Must("converting an application", err)
	delete(object, "status")
	raw, err := yaml.Marshal(object)
	s.Must("writing an application", err)
	file := filepath.Join(s.TempDir(), "app.yaml")
	s.Must("writing an application", os.WriteFile(file, raw, 0o600))
	return file
}

// TestRolloutsAreSeenAndMovedByShipperctl uses shipperctl only.
func TestRolloutsAreSeenAndMovedByShipperctl(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		s.applies(s.application("0.0.1", 4, vanguard))
		first := s.Release(0)
		s.WaitsForCommand(first, 0)
		s.says("cluster "+west+": contender 1 of 1 pods, traffic none", "rollout", "status", s.App)
		s.says("waiting: a command", "rollout", "status", "app/"+s.App)
		s.says("release "+first+" goes to step 2 of 2 (full on)", "rollout", "advance", s.App, "--step", "2")
		out, err := s.shipperctl("rollout", "status", s.App, "--watch")
		s.Must("watching the rollout", err)
		if !strings.Contains(out[strings.LastIndex(out, "application:"):], "complete: true") {
			s.Errorf("the watch ended before the rollout was complete:\n%s", out)
		}
		s.installsWhatIsRendered(first)

		next := s.manifest(s.application("0.0.2", 4, vanguard))
		s.says("step 1 (50/50): contender 2 Pods, 2 in traffic, incumbent 2 Pods, 2 in traffic, in each cluster", "plan", "-f", next)
		s.says("nothing would be rolled out", "plan", "-f", s.manifest(s.application("0.0.1", 4, vanguard)))
		s.Edits(func(app *shipper.Application) { app.Spec.Template.Chart.Version = "0.0.2" })
		second := s.Release(1)
		s.WaitsForCommand(second, 0)
		s.says("incumbent: "+first, "rollout", "status", s.App)
		s.says("+  version: 0.0.2", "rollout", "diff", s.App)
		s.says("goes to step 1 of 2 (50/50)", "rollout", "advance", s.App)
		s.WaitsForCommand(second, 1)
		s.endpoints(4) // of the incumbent's Pods that went, too: Kubernetes takes them out a moment later
		s.says("cluster "+east+": contender 2 of 2 pods, incumbent 2 of 2 pods, traffic 50 % : 50 %", "rollout", "status", s.App)
		s.says("goes to step 0 of 2 (staging)", "rollout", "retreat", s.App)
		s.WaitsForCommand(second, 0)
		s.says(second, "rollout", "history", s.App)
		out, err = s.shipperctl("rollout", "abort", s.App, "--wait", "--timeout", "2m")
		s.Must("aborting the rollout", err)
		for _, want := range []string{
			"release " + second + " is given up, " + first + " comes back", "release " + second + " is removed, " + first + " serves in its place",
		} {
			if !strings.Contains(out, want) {
				s.Errorf("the abort does not say %q:\n%s", want, out)
			}
		}
		s.templateIs("0.0.1")
		s.readyPods(first, 4)
		s.readyPods(second, 0)

		s.Edits(func(app *shipper.Application) { app.Spec.Template.Chart.Version = "0.0.2" })
		third := s.releaseAfter(first)
		s.WaitsForCommand(third, 0)
		s.says("rolls out the environment of release "+first, "rollout", "rollback", s.App)
		s.templateIs("0.0.1")
	})
}

// TestBlocksAreMadeOverriddenAndLiftedByShipperctl stops a rollout, overrides the block, and deletes it.
func TestBlocksAreMadeOverriddenAndLiftedByShipperctl(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		s.applies(s.application("0.0.1", 2, vanguard))
		rel := s.Release(0)
		s.WaitsForCommand(rel, 0)
		key := s.Namespace + "/incident"
		s.says("namespace: "+s.Namespace, "block", "create", "incident", "-m", "hands off", "--ttl", "2h", "--dry-run")
		s.says("block "+key+" is created: until ", "block", "create", "incident", "-m", "hands off", "--ttl", "2h", "--require-override-reason")
		s.saysBlocked(rel, key)
		s.says("blocks: "+key+" (hands off; admin)", "rollout", "status", s.App)
		s.says(key, "block", "list")
		_, err := s.shipperctl("rollout", "advance", s.App)
		s.forbidden("advancing under a block", err, key)
		_, err = s.shipperctl("override", s.App, "--blocks", key)
		s.refused("overriding without a reason", err, "wants to know why")
		s.says("release "+rel+" overrides "+key, "override", s.App, "--reason", "it is burning", "--blocks", key)
		s.says("goes to step 2 of 2", "rollout", "advance", s.App, "--step", "2")
		s.Completes(rel)
		s.says("block "+key+" is lifted", "block", "lift", key)
	})
}
