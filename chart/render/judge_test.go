// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
)

// firstEight are the warnings of a Service with one port many times.
func firstEight() (out []string) {
	for n := range 8 {
		out = append(out, fmt.Sprintf(`template sample/templates/service.yaml: Service "web": spec.ports[0] and [%d] have the same port and `+
			`protocol "80, TCP"; the second is left out`, n+1))
	}
	return out
}

func TestAChartIsJudgedAsItsInstallationWould(t *testing.T) {
	const two = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: '{{ .Release.Name }}-two'}\n" +
		"spec: {template: {metadata: {labels: {a: b}}}}\n"
	const scaler = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: hpa}\n" +
		"spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: '{{ .Release.Name }}'}}\n"
	const web = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n" +
		"spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}}}\n"
	const broken = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec: {replicas: -1}\n"
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [%s{port: 80}]}\n"
	const twice = `template sample/templates/service.yaml: Service "web": spec.ports[0] and [1] have the same port and protocol "80, TCP"; `
	const hook = "apiVersion: v1\nkind: Pod\nmetadata: {name: check, namespace: kube-system, annotations: {helm.sh/hook: test}}\n"
	for sentence, tc := range map[string]struct {
		files  map[string]string
		values shipper.ChartValues
		in     render.Cluster
		naming shipper.ChartNaming
		doubts []string
		reason string
		want   string
	}{
		"a chart that runs": {},
		"no Deployment": {
			files: map[string]string{"templates/deployment.yaml": ""}, reason: shipper.WrongChartDeployments,
			want: `chart "sample" 1.2.3: it must have exactly one Deployment, but 0 are found`,
		},
		"two Deployments": {
			files: map[string]string{"templates/two.yaml": two}, reason: shipper.WrongChartDeployments,
			want: `chart "sample" 1.2.3: it must have exactly one Deployment, but 2 are found (super-0, super-0-two)`,
		},
		"two Deployments, in a cluster that has an API": {
			files: map[string]string{"templates/two.yaml": `{{ if .Capabilities.APIVersions.Has "example.com/v1" }}` + two + "{{ end }}"},
			in:    render.Cluster{APIVersions: []string{"v1", "apps/v1", "example.com/v1"}}, reason: shipper.WrongChartDeployments,
			want: `chart "sample" 1.2.3: it must have exactly one Deployment, but 2 are found (super-0, super-0-two)`,
		},
		"one Deployment, in a cluster that lacks that API": {
			files: map[string]string{"templates/two.yaml": `{{ if .Capabilities.APIVersions.Has "example.com/v1" }}` + two + "{{ end }}"},
			in:    render.Cluster{APIVersions: []string{"v1", "apps/v1"}},
		},
		"a chart for newer clusters": {
			files: map[string]string{"Chart.yaml": "apiVersion: v2\nname: sample\nversion: 1.2.3\nkubeVersion: '>=1.31'\n"},
			in:    render.Cluster{KubeVersion: "v1.30.1"}, reason: shipper.ChartError,
			want: `chart "sample" 1.2.3: it requires Kubernetes >=1.31, and this cluster has v1.30.1`,
		},
		"two Deployments, named by Application": {
			files: map[string]string{"templates/two.yaml": two}, naming: shipper.NamingByApplication,
		},
		"all that is wrong at once, named by Application": {
			files:  map[string]string{"templates/db.yaml": broken, "templates/hook.yaml": hook},
			naming: shipper.NamingByApplication, reason: shipper.ChartError,
			want: `chart "sample" 1.2.3: StatefulSet db: spec.replicas is -1, which is not a number of Pods: change it by a value of the chart; ` +
				`template sample/templates/hook.yaml: Pod "check" asks for the namespace "kube-system", but a release is installed in its own ` +
				`namespace "shop"; leave metadata.namespace out, or use {{ .Release.Namespace }}`,
		},
		"an autoscaler, named by Application": {
			files: map[string]string{
				"templates/web.yaml": web,
				"templates/hpa.yaml": "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: hpa}\n" +
					"spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}\n",
			},
			naming: shipper.NamingByApplication,
			doubts: []string{"HorizontalPodAutoscaler hpa scales Deployment web, which Shipper does too, step by step: " +
				"leave it out of the chart, or disable it by a value"},
		},
		"equal elements of a list, by Release": {
			files:  map[string]string{"templates/service.yaml": fmt.Sprintf(service, "{port: 80}, ")},
			doubts: []string{twice + "the second is left out"},
		},
		"equal elements of a list, named by Application": {
			files:  map[string]string{"templates/service.yaml": fmt.Sprintf(service, "{port: 80}, ")},
			naming: shipper.NamingByApplication, doubts: []string{twice + "the second is left out"},
		},
		"a Deployment that is paused": {
			files: map[string]string{"templates/deployment.yaml": strings.Replace(deployment, "spec: {", "spec: {paused: true, ", 1)},
			doubts: []string{`template sample/templates/deployment.yaml: Deployment "super-0" is paused, so Kubernetes creates no Pods of it: ` +
				`leave spec.paused out of the chart`},
		},
		"more lists than are named": {
			files:  map[string]string{"templates/service.yaml": fmt.Sprintf(service, strings.Repeat("{port: 80}, ", 11))},
			doubts: append(firstEight(), "at least 3 more lists have elements of one key"),
		},
		"elements of a list that differ in more than their key": {
			files:  map[string]string{"templates/service.yaml": fmt.Sprintf(service, "{port: 80, name: x}, ")},
			reason: shipper.ChartError, want: `chart "sample" 1.2.3: ` + twice + "Kubernetes accepts no two: remove one",
		},
		"a Service of each Release": {
			files: map[string]string{
				"templates/service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: '{{ .Release.Name }}-web'}\n" +
					"spec: {selector: {app: nginx}}\n",
			},
			reason: shipper.ChartError,
			want: `chart "sample" 1.2.3: template sample/templates/service.yaml: Service "super-0-web": ` +
				`the name of the Service carries that of the release, so that every release would have its own ` +
				`and no traffic could be shifted from one to the other; ` +
				`give it a name that stays the same from release to release, such as {{ .Chart.Name }} in its template ` +
				`(fullnameOverride names the Deployment too, which needs the release's name)`,
		},
		"an autoscaler of a Deployment by default": {
			files: map[string]string{"templates/keda.yaml": "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: keda}\n" +
				"spec: {scaleTargetRef: {name: '{{ .Release.Name }}'}}\n"},
			doubts: []string{`template sample/templates/keda.yaml: ScaledObject "keda" scales the Deployment super-0, which ` +
				`Shipper does too, step by step: leave it out of the chart, or disable it by a value`},
		},
		"an autoscaler of the Deployment": {
			files: map[string]string{"templates/hpa.yaml": scaler},
			doubts: []string{`template sample/templates/hpa.yaml: HorizontalPodAutoscaler "hpa" scales the Deployment super-0, which ` +
				`Shipper does too, step by step: leave it out of the chart, or disable it by a value`},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "super-0", Labels: map[string]string{shipper.AppLabel: "super"},
			}}
			rel.Spec.Environment.Values, rel.Spec.Environment.Chart.Naming = &tc.values, tc.naming
			doubts, err := sample(t, tc.files).Judge(t.Context(), rel, tc.in)
			if diff := cmp.Diff(tc.doubts, doubts); diff != "" {
				t.Errorf("doubts (-want +got):\n%s", diff)
			}
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
			} else if diff := cmp.Diff(failure{Reason: tc.reason, Message: tc.want}, read(t, err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
