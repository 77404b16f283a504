// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/values"
)

func TestWhatNoClusterCanRunIsCertain(t *testing.T) {
	const two = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: '{{ .Release.Name }}-two'}\n" +
		"spec: {template: {metadata: {labels: {a: b}}}}\n"
	const scaler = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: hpa}\n" +
		"spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: '{{ .Release.Name }}'}}\n"
	const asks = `{{ if .Capabilities.APIVersions.Has "example.com/v1" }}{{ end }}`
	const newer = "; in clusters of other versions or APIs it may be otherwise"
	for sentence, tc := range map[string]struct {
		files  map[string]string
		values shipper.ChartValues
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
		"two Deployments, where some clusters may have one": {
			files:  map[string]string{"templates/two.yaml": asks + two},
			doubts: []string{`chart "sample" 1.2.3: it must have exactly one Deployment, but 2 are found (super-0, super-0-two)` + newer},
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
			rel.Spec.Environment.Values = &tc.values
			doubts, err := sample(t, tc.files).Judge(t.Context(), rel, values.Place{})
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
