// SPDX-License-Identifier: Apache-2.0

package charts

// InstallHooks is a template for Hooked with Jobs before and after the installation. One Job is deleted when it has succeeded.
const InstallHooks = `{{ range list "pre-install,hook-succeeded" "pre-install,before-hook-creation" "post-install,hook-failed" }}
{{ $h := splitList "," . }}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ join "-" $h }}
  annotations: {helm.sh/hook: {{ index $h 0 }}, helm.sh/hook-delete-policy: {{ index $h 1 }}}
spec:
  template: {spec: {restartPolicy: Never, containers: [{name: it, image: "nginx:stable"}]}}
{{ end }}`

// DeleteHooks is a template for Hooked with Jobs before and after the deletion of the Application. The first fails if value broken is true.
const DeleteHooks = `{{ range list "before,pre-delete" "after,post-delete" }}
{{ $h := splitList "," . }}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ index $h 0 }}
  annotations: {helm.sh/hook: {{ index $h 1 }}}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: it, image: "nginx:{{ if and $.Values.broken (eq . "before,pre-delete") }}broken{{ else }}stable{{ end }}"}]
{{ end }}`

// Hooked returns the files of chart hooked 0.0.1: a Service, a Deployment, and the hooks that the template renders.
func Hooked(hooks string) map[string]string {
	return map[string]string{
		"Chart.yaml":           "apiVersion: v2\nname: hooked\nversion: 0.0.1\n",
		"templates/hooks.yaml": hooks,
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
	}
}
