// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/base64"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/test/charts"
)

// runnable returns the files of a chart that can be rolled out.
func runnable() map[string]string {
	return map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"templates/deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: \"{{ .Release.Name }}\"}\nspec: {" +
			"replicas: {{ .Values.replicaCount }}, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}}}\n",
		"templates/service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}}\n",
	}
}

func TestAChartThatCanNeverRunIsRefused(t *testing.T) {
	t.Parallel()
	ns, dev := namespace(t), as(t, "dev")
	const second = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: second}\n" +
		"spec: {selector: {matchLabels: {app: b}}, template: {metadata: {labels: {app: b}}}}\n"
	for name, tc := range map[string]struct {
		files    map[string]string
		replicas any
		// decided is true if the chart decides how its objects are named.
		decided bool
		want    func(release string) string
	}{
		"a chart that runs": {replicas: int64(2)},
		"two Deployments that are named by Application": {
			files:    map[string]string{"templates/second.yaml": second},
			replicas: int64(2), decided: true,
		},
		"replicas that are no number, named by Application": {
			files: map[string]string{"templates/second.yaml": second}, replicas: "four", decided: true,
			want: func(string) string {
				return `chart "web" 1.0.0: Deployment super-server: spec.replicas is "four", which is not a number of Pods: ` +
					`change it by a value of the chart`
			},
		},
		"no Deployment": {
			files: map[string]string{"templates/deployment.yaml": ""}, replicas: int64(2),
			want: func(string) string { return `chart "web" 1.0.0: it must have exactly one Deployment, but 0 are found` },
		},
		"two Deployments": {
			files:    map[string]string{"templates/second.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: second}\nspec: {}\n"},
			replicas: int64(2),
			want: func(release string) string {
				return `chart "web" 1.0.0: it must have exactly one Deployment, but 2 are found (` + release + `, second)`
			},
		},
		"a Service named after the Release": {
			files: map[string]string{"templates/service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: \"{{ .Release.Name }}-web\"}\n" +
				"spec: {selector: {app: web}}\n"},
			replicas: int64(2),
			want: func(release string) string {
				return `chart "web" 1.0.0: template web/templates/service.yaml: Service "` + release + `-web": ` +
					`the name of the Service carries that of the release, so that every release would have its own ` +
					`and no traffic could be shifted from one to the other; ` +
					`give it a name that stays ` +
					`the same from release to release, such as {{ .Chart.Name }} in its template (fullnameOverride names the Deployment too, ` +
					`which needs the release's name)`
			},
		},
		"replicas that are no number": {
			replicas: "four",
			want: func(release string) string {
				return `chart "web" 1.0.0: template web/templates/deployment.yaml: Deployment "` + release +
					`": spec.replicas is "four", which is not a number of Pods`
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := runnable()
			for file, content := range tc.files {
				files[file] = content
			}
			packed, err := charts.PackFiles("web", "1.0.0", files)
			if err != nil {
				t.Fatal(err)
			}
			app := ask.Application(func(a *shipper.Application) {
				a.Namespace, a.UID = ns, ""
				a.Spec.Template.Chart = shipper.Chart{Name: "web", Version: "1.0.0", Archive: base64.StdEncoding.EncodeToString(packed.Bytes)}
				if !tc.decided {
					a.Spec.Template.Chart.Naming = shipper.NamingByRelease
				}
				a.Spec.Template.Values = &shipper.ChartValues{"replicaCount": tc.replicas}
			})
			err = dev.Create(t.Context(), app.DeepCopy(), client.DryRunAll)
			if tc.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			checkMessage(t, err, app, tc.want(nameOf(t, app)))
			checkMessage(t, dev.Create(t.Context(), app), app, tc.want(nameOf(t, app)))
		})
	}
}

// checkMessage compares the whole message of a refusal of app's chart.
func checkMessage(t *testing.T, err error, app *shipper.Application, why string) {
	t.Helper()
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Fatalf("got %v, want a refusal", err)
	}
	want := `admission webhook "application.shipper.booking.com" denied the request: Application.shipper.booking.com "` + app.Name +
		`" is invalid: spec.template.chart: Invalid value: "web 1.0.0": ` + why
	if diff := cmp.Diff(want, status.Status().Message); diff != "" || status.Status().Code != 422 {
		t.Errorf("code %d, message (-want +got):\n%s", status.Status().Code, diff)
	}
}
