// SPDX-License-Identifier: Apache-2.0

package main

// replacement is a piece of text in the manifests for which the chart has another.
type replacement struct {
	in    string // how the paths of the manifests begin, below manifests
	old   string
	value string
}

// Lines that more than one replacement needs.
const (
	keep   = "    helm.sh/resource-policy: keep\n"
	named  = "  name: shipper.booking.com\n  labels:\n    app.kubernetes.io/name: shipper\n"
	inject = "{{- if .Values.certManager.enabled }}\n  annotations:\n" +
		"    cert-manager.io/inject-ca-from: shipper-system/shipper-webhook\n{{- end }}\n"
	// Both programs have these flags, before those of args, which win.
	checks = "        {{- with .Values.outgoingURLs }}\n" +
		"        - {{ join \",\" . | printf \"--outgoing-urls=%s\" | quote }}\n        {{- end }}\n" +
		"        {{- if ne .Values.sharedChecksNamespace \"shipper-checks\" }}\n" +
		"        - {{ printf \"--shared-checks-namespace=%s\" .Values.sharedChecksNamespace | quote }}\n        {{- end }}\n" +
		"        {{- if ne .Values.unhealthyAfter \"5m\" }}\n" +
		"        - {{ printf \"--unhealthy-after=%s\" .Values.unhealthyAfter | quote }}\n        {{- end }}\n" + placeable
	placeable = "        {{- with .Values.resources.placeableKinds }}\n" +
		"        - {{ join \",\" . | printf \"--placeable-kinds=%s\" | quote }}\n        {{- end }}\n" +
		"        {{- with .Values.resources.unplaceableKinds }}\n" +
		"        - {{ join \",\" . | printf \"--unplaceable-kinds=%s\" | quote }}\n        {{- end }}\n" +
		"        {{- with .Values.resources.unplaceableNamespaces }}\n" +
		"        - {{ join \",\" . | printf \"--unplaceable-namespaces=%s\" | quote }}\n        {{- end }}\n"
	host = "- topologyKey: kubernetes.io/hostname\n        maxSkew: 1\n        whenUnsatisfiable: "
)

// replacements are all of them.
var replacements = []replacement{
	// Uninstalling the chart takes Shipper away, not what people have written with it.
	{"crd/", "  annotations:\n", "  annotations:\n" + keep},
	{"deploy/namespaces.yaml", "metadata:\n", "metadata:\n  annotations:\n" + keep},

	{"webhook/", "failurePolicy: Fail\n", "failurePolicy: {{ .Values.failurePolicy }}\n"},
	{"webhook/", named, named + inject},

	{"deploy/shipper.yaml", "replicas: 2\n", "replicas: {{ .Values.replicas }}\n"},
	{"deploy/shipper.yaml", host + "ScheduleAnyway\n", host + "{{ .Values.spreadOverHosts }}\n"},
	{"deploy/shipper.yaml", "image: shipper\n", "image: {{ .Values.image }}\n"},
	{"deploy/shipper.yaml", "--metrics-addr=:8080\n        - --chart-cache-dir=/charts\n",
		"--metrics-addr=:8080\n        - --chart-cache-dir=/charts\n" +
			"        {{- if .Values.certManager.enabled }}\n        - --certs=cert-manager\n        {{- end }}\n" + checks +
			"        {{- with .Values.webhook.args }}\n        {{- toYaml . | nindent 8 }}\n        {{- end }}\n"},
	{"deploy/shipper.yaml", "--metrics-addr=:8082\n        - --identity=$(POD_NAME)\n        - --chart-cache-dir=/charts\n",
		"--metrics-addr=:8082\n        - --identity=$(POD_NAME)\n        - --chart-cache-dir=/charts\n" + checks +
			"        {{- with .Values.reconciler.args }}\n        {{- toYaml . | nindent 8 }}\n        {{- end }}\n"},
	{"deploy/shipper.yaml", "resources:\n          requests: {cpu: 100m, memory: 128Mi}\n          limits: {memory: 512Mi}\n",
		"resources:\n          {{- toYaml .Values.webhook.resources | nindent 10 }}\n"},
	{"deploy/shipper.yaml", "resources:\n          requests: {cpu: 200m, memory: 256Mi}\n          limits: {memory: 1Gi}\n",
		"resources:\n          {{- toYaml .Values.reconciler.resources | nindent 10 }}\n"},
}
