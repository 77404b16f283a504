// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"

	"github.com/google/go-cmp/cmp"
)

// hookedChart has Jobs before and after its installation. One Job is deleted when it has succeeded.
const hookedChart = "hooked"

// moreCharts are charts of stories, beside those of test/charts.
var moreCharts = map[string]map[string]string{
	hookedChart: {
		"Chart.yaml": "apiVersion: v2\nname: hooked\nversion: 0.0.1\n",
		"templates/hooks.yaml": `{{ range list "pre-install,hook-succeeded" "pre-install,before-hook-creation" "post-install,hook-failed" }}
{{ $h := splitList "," . }}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ join "-" $h }}
  annotations: {helm.sh/hook: {{ index $h 0 }}, helm.sh/hook-delete-policy: {{ index $h 1 }}}
spec:
  template: {spec: {restartPolicy: Never, containers: [{name: it, image: "nginx:stable"}]}}
{{ end }}`,
		"templates/service.yaml": `apiVersion: v1
kind: Service
metadata: {name: hooked}
spec: {selector: {app: hooked}, ports: [{port: 80}]}
`,
		"templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}"}
spec:
  selector: {matchLabels: {app: hooked}}
  template:
    metadata: {labels: {app: hooked}}
    spec: {containers: [{name: app, image: "nginx:stable"}]}
`,
	},
}

// hooksStory installs a chart with hooks. Each Job is created once in each cluster, even if it is deleted afterwards.
func hooksStory() Story {
	return Story{
		Name:  "hooks",
		Begin: func(f *Fixture) { f.Bystand() },
		Parts: []Part{{
			Name: "installed",
			Act: func(f *Fixture) {
				app := f.Application(appName, "0.0.1", 1, allIn())
				app.Spec.Template.Chart.Name = hookedChart
				f.Creates(app)
				f.Completes(f.Release(0))
			},
			Check: func(f *Fixture) {
				want := []string{"post-install-hook-failed", "pre-install-before-hook-creation", "pre-install-hook-succeeded"}
				for name := range f.Clusters {
					made := f.hosts[name].made("batch/jobs")
					slices.Sort(made)
					if diff := cmp.Diff(want, made); diff != "" {
						f.laws.broken(4, "Jobs in %s (-want +created):\n%s", name, diff)
					}
				}
			},
		}},
	}
}
