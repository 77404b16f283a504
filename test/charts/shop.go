// SPDX-License-Identifier: Apache-2.0

package charts

import "strings"

// Shop are the files of a version of chart shop, whose objects are named by Application: Deployments web and, unless its value says
// otherwise, jobs, and the Services front of the first, back of the last, and all of both. Version 0.0.2 has other labels, and its
// Service front has no port 8081 any more.
func Shop(version string) map[string]string {
	files := map[string]string{
		"Chart.yaml":  "apiVersion: v2\nname: shop\nversion: " + version + "\n",
		"values.yaml": "replicaCount: 1\njobs: true\n",
		"templates/deployments.yaml": `{{- range ternary (list "web" "jobs") (list "web") .Values.jobs }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ $.Release.Name }}-{{ . }}"}
spec:
  replicas: {{ $.Values.replicaCount }}
  selector: {matchLabels: {app: {{ . }}}}
  template:
    metadata: {labels: {app: {{ . }}, part-of: shop}}
    spec: {containers: [{name: app, image: "nginx:stable", ports: [{name: http, containerPort: 8080}, {name: admin, containerPort: 8081}]}]}
{{- end }}
`,
		"templates/services.yaml": `apiVersion: v1
kind: Service
metadata: {name: front}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: http}, {name: admin, port: 8081, targetPort: admin}]
---
apiVersion: v1
kind: Service
metadata: {name: back}
spec: {selector: {app: {{ ternary "jobs" "web" .Values.jobs }}}, ports: [{port: 80, targetPort: http}]}
---
apiVersion: v1
kind: Service
metadata: {name: all}
spec: {selector: {part-of: shop}, ports: [{port: 8081, targetPort: admin}]}
`,
	}
	if version == "0.0.1" {
		return files
	}
	for name, content := range files {
		content = strings.ReplaceAll(content, "{app: ", "{component: ")
		content = strings.ReplaceAll(content, "part-of: shop", "suite: shop")
		files[name] = strings.ReplaceAll(content, ", {name: admin, port: 8081, targetPort: admin}", "")
	}
	return files
}
