// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"shipper.dev/shipper/test/charts"
)

// boutique are the Deployments of the online boutique. loadgenerator has no Service, and frontend has two.
var boutique = []string{
	"adservice", "cartservice", "checkoutservice", "currencyservice", "emailservice", "frontend", "loadgenerator", "paymentservice",
	"productcatalogservice", "recommendationservice", "redis-cart", "shippingservice",
}

// boutiqueServices are its Services.
var boutiqueServices = append([]string{
	"frontend-external",
}, without(boutique, "loadgenerator")...)

func without(all []string, name string) (out []string) {
	for _, one := range all {
		if one != name {
			out = append(out, one)
		}
	}
	return out
}

// shapes are charts of the shapes of the popular ones, for where those are not at hand: the same kinds, names and values.
func shapes() ([]charts.Archive, error) {
	var all []charts.Archive
	for _, shape := range []struct{ name, version, values, template string }{
		{"podinfo", "6.14.1", "replicaCount: 1\nui: {message: hello}\n", podinfoShape},
		{"onlineboutique", "0.10.6", "images: {tag: v0.10.6}\n", boutiqueShape()},
		{"postgresql", "17.1.0", "auth: {postgresPassword: ''}\nreadReplicas: {replicaCount: 1, podAnnotations: {}}\n", postgresqlShape},
		{"wordpress", "27.0.0", "podAnnotations: {}\n", wordpressShape},
	} {
		packed, err := charts.PackFiles(shape.name, shape.version, map[string]string{
			"Chart.yaml":         fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\n", shape.name, shape.version),
			"values.yaml":        shape.values,
			"templates/all.yaml": shape.template,
		})
		if err != nil {
			return nil, err
		}
		all = append(all, packed)
	}
	return all, nil
}

const podinfoShape = `apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}", labels: {app.kubernetes.io/name: "{{ .Release.Name }}"}}
spec:
  replicas: {{ .Values.replicaCount }}
  selector: {matchLabels: {app.kubernetes.io/name: "{{ .Release.Name }}"}}
  template:
    metadata: {labels: {app.kubernetes.io/name: "{{ .Release.Name }}"}}
    spec:
      containers:
      - name: podinfo
        image: podinfo
        ports: [{name: http, containerPort: 9898}]
        env: [{name: MESSAGE, value: {{ quote .Values.ui.message }}}]
---
apiVersion: v1
kind: Service
metadata: {name: "{{ .Release.Name }}"}
spec: {selector: {app.kubernetes.io/name: "{{ .Release.Name }}"}, ports: [{name: http, port: 9898, targetPort: http}]}
`

// boutiqueShape has one Deployment and one Service for each part.
func boutiqueShape() string {
	var out strings.Builder
	for _, name := range boutique {
		fmt.Fprintf(&out, `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {serviceAccountName: %[1]s, containers: [{name: server, image: "%[1]s:{{ .Values.images.tag }}"}]}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: %[1]s}}
`, name)
	}
	for _, name := range boutiqueServices {
		fmt.Fprintf(&out, `---
apiVersion: v1
kind: Service
metadata: {name: %s}
spec: {selector: {app: %s}, ports: [{name: grpc, port: 80}]}
`, name, strings.TrimSuffix(name, "-external"))
	}
	return out.String()
}

// password is a part of a template: a password that the values give, that is there already, or that is new.
const password = `{{- define "password" -}}
{{- $there := lookup "v1" "Secret" .Release.Namespace .secret -}}
{{- .given | default ($there | dig "data" .key "" | b64dec) | default (randAlphaNum 10) | b64enc -}}
{{- end -}}
`

const postgresqlShape = password + `apiVersion: v1
kind: Secret
metadata: {name: "{{ .Release.Name }}"}
data:
  postgres-password: {{ include "password" (dict "Release" .Release "secret" .Release.Name "key" "postgres-password"
    "given" .Values.auth.postgresPassword) }}
{{- range list "primary" "read" }}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: "{{ $.Release.Name }}-{{ . }}"}
spec:
  replicas: {{ eq . "read" | ternary $.Values.readReplicas.replicaCount 1 }}
  serviceName: "{{ $.Release.Name }}-{{ . }}-hl"
  selector: {matchLabels: {app: "{{ $.Release.Name }}", role: {{ . }}}}
  template:
    metadata:
      labels: {app: "{{ $.Release.Name }}", role: {{ . }}}
      annotations: {{ eq . "read" | ternary $.Values.readReplicas.podAnnotations dict | toJson }}
    spec:
      containers: [{name: postgresql, image: postgresql, envFrom: [{secretRef: {name: "{{ $.Release.Name }}"}}]}]
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 8Gi}}}}]
---
apiVersion: v1
kind: Service
metadata: {name: "{{ $.Release.Name }}-{{ . }}"}
spec: {selector: {app: "{{ $.Release.Name }}", role: {{ . }}}, ports: [{port: 5432}]}
---
apiVersion: v1
kind: Service
metadata: {name: "{{ $.Release.Name }}-{{ . }}-hl"}
spec: {clusterIP: None, selector: {app: "{{ $.Release.Name }}", role: {{ . }}}, ports: [{port: 5432}]}
{{- end }}
`

const wordpressShape = password + `apiVersion: v1
kind: Secret
metadata: {name: "{{ .Release.Name }}"}
data:
  wordpress-password: {{ include "password" (dict "Release" .Release "secret" .Release.Name "key" "wordpress-password" "given" "") }}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: "{{ .Release.Name }}"},
  spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}"}
spec:
  selector: {matchLabels: {app: "{{ .Release.Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Release.Name }}"}, annotations: {{ toJson .Values.podAnnotations }}}
    spec:
      containers: [{name: wordpress, image: wordpress, envFrom: [{secretRef: {name: "{{ .Release.Name }}"}}]}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: "{{ .Release.Name }}"}}]
---
{apiVersion: v1, kind: Service, metadata: {name: "{{ .Release.Name }}"},
  spec: {selector: {app: "{{ .Release.Name }}"}, ports: [{port: 80}]}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: "{{ .Release.Name }}-mariadb"}
spec:
  serviceName: "{{ .Release.Name }}-mariadb"
  selector: {matchLabels: {app: "{{ .Release.Name }}-mariadb"}}
  template:
    metadata: {labels: {app: "{{ .Release.Name }}-mariadb"}}
    spec: {containers: [{name: mariadb, image: mariadb}]}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 8Gi}}}}]
---
{apiVersion: v1, kind: Service, metadata: {name: "{{ .Release.Name }}-mariadb"},
  spec: {selector: {app: "{{ .Release.Name }}-mariadb"}, ports: [{port: 3306}]}}
`
