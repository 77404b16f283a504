// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"fmt"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/test/charts"
)

// indexFile is an index as Helm reads it.
type indexFile struct {
	APIVersion string                    `json:"apiVersion"`
	Entries    map[string][]chartVersion `json:"entries"`
}

type chartVersion struct {
	*helmchart.Metadata
	Created string   `json:"created"`
	Digest  string   `json:"digest"`
	URLs    []string `json:"urls"`
}

// indexOf is the index of a repository with so many charts.
func indexOf(count int) ([]byte, error) {
	index := indexFile{APIVersion: "v1", Entries: map[string][]chartVersion{}}
	for i := range count {
		name := fmt.Sprintf("chart-%d", i)
		for v := range versions {
			version := fmt.Sprintf("1.%d.0", v)
			index.Entries[name] = append(index.Entries[name], chartVersion{
				Metadata: metadataOf(name, version), Created: "2026-01-02T03:04:05Z",
				Digest: charts.NewArchive(name, version, []byte(name+version)).Digest,
				URLs:   []string{name + "-" + version + ".tgz"},
			})
		}
	}
	return yaml.Marshal(index)
}

// metadataOf is the metadata of a version of a chart in an index, as long as that of public charts.
func metadataOf(name, version string) *helmchart.Metadata {
	return &helmchart.Metadata{
		APIVersion: "v2", Name: name, Version: version, AppVersion: version, Home: "https://example.com",
		Description: "A tool that many people install, with a sentence or two on what it is for and how it is told what to do.",
		Keywords:    []string{"web", "http", "proxy"},
		Maintainers: []*helmchart.Maintainer{{Name: "Example", Email: "charts@example.com", URL: "https://example.com/charts"}},
		Annotations: map[string]string{"category": "Infrastructure"},
		Dependencies: []*helmchart.Dependency{
			{Name: "library", Version: "2.x.x", Repository: "https://charts.example.com", Tags: []string{"library"}},
		},
	}
}

// thirtyObjects is a chart of a Deployment, a Service and 28 ConfigMaps, each of which includes, ranges and quotes.
func thirtyObjects() map[string]string {
	files := map[string]string{
		"Chart.yaml":  "apiVersion: v2\nname: thirty\nversion: 1.0.0\n",
		"values.yaml": "replicaCount: 1\nimage: {repository: nginx, tag: stable}\nsettings: {one: 1, two: two, three: [a, b, c]}\n",
		"templates/_helpers.tpl": `{{- define "thirty.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.Version | quote }}
{{- end -}}
`,
		"templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}-web
  labels: {{- include "thirty.labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.replicaCount }}
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: web
        image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default "latest" }}"
        env: {{- range $name, $value := .Values.settings }}
        - {name: {{ $name | upper }}, value: {{ $value | toJson | quote }}}
        {{- end }}
`,
		"templates/service.yaml": `apiVersion: v1
kind: Service
metadata:
  name: web
  labels:
    shipper-lb: production
    {{- include "thirty.labels" . | nindent 4 }}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80}]
`,
	}
	for i := range 28 {
		files[fmt.Sprintf("templates/config-%d.yaml", i)] = fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-config-%d
  labels: {{- include "thirty.labels" . | nindent 4 }}
data:
  settings.yaml: {{ .Values.settings | toYaml | quote }}
  {{- range until 8 }}
  line-{{ . }}: {{ printf "%%s-%%d" $.Release.Name . | b64enc | quote }}
  {{- end }}
`, i)
	}
	return files
}
