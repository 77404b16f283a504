// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/webhook/templatecheck"
)

// inputs are the files in testdata that are converted.
var inputs = append([]string{
	"analysis", "autoscaled", "bluegreen", "bluegreen-v0.1", "canary", "containers", "everything", "flagger", "lossy",
}, slices.Concat(canaryInputs, fleetInputs, keptnInputs)...)

// keptnInputs are those with files of Keptn.
var keptnInputs = []string{
	"keptn-0.1", "keptn-0.2", "keptn-approvals", "keptn-body", "keptn-description", "keptn-environments", "keptn-events", "keptn-executors",
	"keptn-measured", "keptn-nameless", "keptn-names", "keptn-old-keys", "keptn-phases", "keptn-plain", "keptn-project",
	"keptn-quality-gate", "keptn-scores", "keptn-selectors", "keptn-slo", "keptn-stages", "keptn-twice", "keptn-two", "keptn-wait",
}

// canaryInputs are those with Canaries of Flagger.
var canaryInputs = []string{
	"canaries/ab-test", "canaries/autoscaled", "canaries/blue-green", "canaries/blue-green-kubernetes", "canaries/configs",
	"canaries/exported", "canaries/lossy", "canaries/manual-gates", "canaries/nginx", "canaries/no-deployment", "canaries/no-steps",
	"canaries/other-targets", "canaries/queries", "canaries/routes", "canaries/services", "canaries/several", "canaries/skipped",
	"canaries/templates", "canaries/v1alpha3", "canaries/webhooks", "canaries/weights", "canaries/weights-of-mesh",
}

// fleetInputs are those with objects of KubeFleet: the tasks of the design, and what has no counterpart.
var fleetInputs = []string{
	"fleet-1-clusters", "fleet-2-namespace", "fleet-3-ranked", "fleet-4-spread", "fleet-5-fixed", "fleet-6-envelope", "fleet-8-rolling",
	"fleet-9-external", "fleet-10-external-number", "fleet-11-external-names", "fleet-12-defaults", "fleet-13-defaults-written",
	"fleet-14-roles", "fleet-15-namespaces-by-label", "fleet-16-secrets", "fleet-17-report-only", "fleet-18-co-owned",
	"fleet-19-snapshot-index", "fleet-20-overrides", "fleet-21-evictions", "fleet-22-records", "fleet-23-cluster-envelope",
	"fleet-24-configmap-envelope", "fleet-25-affinity", "fleet-26-reserved", "fleet-27-members", "fleet-28-run-begun",
	"fleet-29-strategies-alone", "fleet-lossy",
}

// converting converts a file of testdata.
func converting(t *testing.T, name string) (raw []byte, out result) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	if shape, ofKeptn := strings.CutPrefix(name, "keptn-"); ofKeptn && os.IsNotExist(err) {
		raw, err = os.ReadFile(filepath.Join("testdata", "shapes", "keptn", shape+".yaml"))
	}
	if err != nil {
		t.Fatal(err)
	}
	with := settings{regions: []string{"eu-west", "us-east"}, shipyard: "shop"}
	if slices.Contains(fleetInputs, name) {
		with = settings{regions: []string{"eu"}, namespace: "platform"}
	}
	out, err = convert(t.Context(), raw, with)
	if err != nil {
		t.Fatal(err)
	}
	return raw, out
}

// TestGolden compares Applications and the files of their charts. UPDATE_GOLDEN=1 writes the golden files.
func TestGolden(t *testing.T) {
	for _, name := range inputs {
		t.Run(name, func(t *testing.T) {
			_, out := converting(t, name)
			got, err := out.print()
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range out.all {
				got = strings.ReplaceAll(got, one.app.Spec.Template.Chart.Archive, "ARCHIVE")
				for _, path := range slices.Sorted(maps.Keys(one.chart)) {
					got += fmt.Sprintf("=== %s/%s\n%s", one.app.Name, path, one.chart[path])
				}
			}
			golden := filepath.Join("testdata", name+".golden")
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", golden, diff)
			}
		})
	}
}

func TestConvertedApplicationsAreValid(t *testing.T) {
	for _, name := range inputs {
		_, out := converting(t, name)
		for _, one := range out.fleet {
			app, ok := one.object.(*shipper.Application)
			if !ok {
				continue
			}
			if errs := templatecheck.Validate(&app.Spec.Template, field.NewPath("spec", "template")); len(errs) > 0 {
				t.Errorf("%s: %v", name, errs)
			}
		}
		for _, one := range out.all {
			if errs := templatecheck.Validate(&one.app.Spec.Template, field.NewPath("spec", "template")); len(errs) > 0 {
				t.Errorf("%s: %v", name, errs)
			}
		}
	}
}

func TestTheArchiveIsTheSameForTheSameChart(t *testing.T) {
	for _, name := range inputs {
		_, out := converting(t, name)
		_, again := converting(t, name)
		for i, one := range out.all {
			if diff := cmp.Diff(one.app, again.all[i].app); diff != "" {
				t.Errorf("%s, the second time (-first +second):\n%s", name, diff)
			}
		}
	}
}

// rendered are the parts of a chart's objects that matter to Shipper.
type rendered struct {
	Kind, Name, Given, Use string
	// Replicas are those of the chart, and Template the Pod template as the chart renders it.
	Replicas int32
	Template map[string]any
	// Selector is what Shipper makes of the Service's.
	Selector map[string]string
}

func TestConvertedChartsRender(t *testing.T) {
	target := render.Target{Naming: shipper.NamingByApplication, ReleaseName: "web-6f19aa85-0", Namespace: "shop", App: "web"}
	production := func(name string) map[string]string {
		return map[string]string{"shipper-app": "web", "serves.shipper.booking.com/" + name: "true"}
	}
	preview := func(name string) map[string]string {
		return map[string]string{"shipper-app": "web", "shipper-release": "none", "backend.shipper.booking.com/" + name: "true"}
	}
	deployment := func(replicas int32) rendered {
		return rendered{Kind: "Deployment", Name: "web-6f19aa85-0", Given: "web", Replicas: replicas}
	}
	for name, want := range map[string][]rendered{
		"canary": {
			{Kind: "Service", Name: "storefront", Given: "storefront", Use: "production", Selector: production("storefront")},
			deployment(5),
		},
		"bluegreen": {
			{Kind: "Service", Name: "web-preview", Given: "web-preview", Use: "preview", Selector: preview("web-preview")},
			{Kind: "Service", Name: "web", Given: "web", Use: "production", Selector: production("web")},
			deployment(3),
		},
		"everything": {
			{Kind: "Service", Name: "web-canary", Given: "web-canary", Use: "preview", Selector: preview("web-canary")},
			{Kind: "Service", Name: "web", Given: "web", Use: "production", Selector: production("web")},
			deployment(10),
		},
	} {
		t.Run(name, func(t *testing.T) {
			raw, out := converting(t, name)
			want[len(want)-1].Template = templateIn(t, raw)
			manifest := manifestOf(t, out.all[0].app, out.all[0].app.Spec.Template.Values, target)
			table, err := manifest.Lots(target)
			if err != nil {
				t.Fatal(err)
			}
			var got []rendered
			for i, e := range table.Entries {
				one := rendered{Kind: e.Object.GetKind(), Name: e.Object.GetName(), Given: e.Given, Use: e.Object.GetLabels()["shipper-lb"]}
				if one.Kind == "Deployment" {
					one.Replicas = e.Replicas
					one.Template, _, _ = unstructured.NestedMap(manifest.Objects[i].Object, "spec", "template")
				} else {
					one.Selector, _, _ = unstructured.NestedStringMap(e.Object.Object, "spec", "selector")
				}
				got = append(got, one)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

// manifestOf renders the chart of an Application with values.
func manifestOf(t *testing.T, app *shipper.Application, values *shipper.ChartValues, target render.Target) render.Manifest {
	t.Helper()
	opened, err := render.OpenInline(app.Spec.Template.Chart.Archive)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := opened.Render(t.Context(), values, target)
	if err != nil {
		t.Fatal(err)
	}
	return manifest
}

// TestAChartRendersToThePodTemplateItWasMadeFrom with its own values and with those of the Application.
func TestAChartRendersToThePodTemplateItWasMadeFrom(t *testing.T) {
	target := render.Target{Naming: shipper.NamingByApplication, ReleaseName: "app-6f19aa85-0", Namespace: "shop", App: "app"}
	for _, name := range inputs {
		raw, out := converting(t, name)
		all, err := read(raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range out.all {
			var want map[string]any
			for _, d := range all {
				template, found, _ := unstructured.NestedMap(d.Object, "spec", "template")
				if found && d.GetName() == one.app.Name && (d.GetKind() == "Rollout" || d.GetKind() == "Deployment") {
					want = template
				}
			}
			for sentence, values := range map[string]*shipper.ChartValues{"its own": nil, "the Application's": one.app.Spec.Template.Values} {
				manifest := manifestOf(t, one.app, values, target)
				for i := range manifest.Objects {
					if o := &manifest.Objects[i]; o.GetKind() == "Deployment" {
						got, _, _ := unstructured.NestedMap(o.Object, "spec", "template")
						if diff := cmp.Diff(want, got); diff != "" {
							t.Errorf("%s: the template of %s with %s values (-want +got):\n%s", name, one.app.Name, sentence, diff)
						}
					}
				}
			}
		}
	}
}

// templateIn is the first Pod template of an input.
func templateIn(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	all, err := read(raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		if template, found, _ := unstructured.NestedMap(d.Object, "spec", "template"); found {
			return template
		}
	}
	t.Fatal("there is no template")
	return nil
}
