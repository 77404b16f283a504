// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/test/charts"
)

// hookedFiles is a chart with hooks. A hook that is to fail cannot pull its image; its Job fails after a second.
var hookedFiles = charts.Hooked(`{{ range list "pre-install" "post-install" "pre-upgrade" "post-upgrade" "test" }}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ . }}
  annotations: {helm.sh/hook: {{ . }}}
spec:
  {{ if eq . $.Values.fails }}activeDeadlineSeconds: 1{{ end }}
  template:
    spec:
      restartPolicy: Never
      containers: [{name: it, image: "nginx:{{ if eq . $.Values.fails }}broken{{ else }}stable{{ end }}"}]
{{ end }}`)

// TestHooksRunInAllClusters takes a chart with hooks through an installation, an upgrade whose hook fails and one whose hooks
// succeed, and runs its tests.
func TestHooksRunInAllClusters(t *testing.T) {
	t.Parallel()
	archive, err := charts.PackFiles("hooked", "0.0.1", hookedFiles)
	if err != nil {
		t.Fatal(err)
	}
	world.Charts.Publish(archive)
	s := begin(t, []string{west, east}, []string{westRegion, eastRegion})
	fails := func(hook string) func(*shipper.Application) {
		return func(a *shipper.Application) { a.Spec.Template.Values = &shipper.ChartValues{"fails": hook} }
	}
	app := s.application("0.0.1", 1, allIn)
	app.Spec.Template.Chart.Name = "hooked"
	fails("nothing")(app)
	s.applies(app)
	first := s.Release(0)
	s.Completes(first)
	s.haveRun("pre-install", "post-install")
	s.says("Succeeded", "rollout", "test", first)
	s.haveRun("pre-install", "post-install", "test")

	s.Edits(fails("pre-upgrade"))
	second := s.releaseAfter(first)
	s.complains(s.App, shipper.HookFailed, `hook pre-upgrade: Job "pre-upgrade" failed`, west, east)
	s.haveRun("pre-install", "post-install", "pre-upgrade", "test")
	s.readyPods(first, 1)

	s.Edits(fails("test"))
	third := s.releaseAfter(second)
	s.Completes(third)
	s.haveRun("pre-install", "post-install", "pre-upgrade", "post-upgrade", "test")
	out, err := s.shipperctl("rollout", "test", third)
	if cli.ExitCode(err) != cli.Failed || strings.Count(out, `hook test: Job "test" failed: DeadlineExceeded`) != 2 {
		t.Errorf("tests that fail are not reported: %v\n%s", err, out)
	}
	s.nobodyDied()
}

// haveRun checks that both clusters have the Jobs of these hooks and no others.
func (s *fixture) haveRun(hooks ...string) {
	s.Helper()
	slices.Sort(hooks)
	want := strings.Join(hooks, " ")
	for _, cluster := range []string{west, east} {
		s.Eventually("hooks that ran in "+cluster, want, func() (string, error) {
			var jobs batchv1.JobList
			err := world.Clusters[cluster].List(s.Ctx, &jobs, client.InNamespace(s.Namespace))
			var names []string
			for _, j := range jobs.Items {
				names = append(names, j.Name)
			}
			slices.Sort(names)
			return strings.Join(names, " "), err
		})
	}
}
