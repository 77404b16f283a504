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
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/webhook/templatecheck"
)

// inputs are the files in testdata that are converted.
var inputs = append([]string{
	"analysis", "autoscaled", "bluegreen", "canary", "everything", "flagger", "keptn-0.1", "keptn-0.2", "keptn-two", "lossy",
}, fleetInputs...)

// fleetInputs are those with objects of KubeFleet: the tasks of the design, and what has no counterpart.
var fleetInputs = []string{
	"fleet-1-clusters", "fleet-2-namespace", "fleet-3-ranked", "fleet-4-spread", "fleet-5-fixed", "fleet-6-envelope", "fleet-8-rolling",
	"fleet-lossy",
}

// converting converts a file of testdata.
func converting(t *testing.T, name string) (raw []byte, out result) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	with := settings{regions: []string{"eu-west", "us-east"}}
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
		if len(out.all) == 0 {
			continue
		}
		chart := out.all[0].chart
		got, err := pack("web", chart)
		if err != nil {
			t.Fatal(err)
		}
		want, err := charts.PackFiles("web", chartVersion, chart)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Bytes, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		_, again := converting(t, name)
		if diff := cmp.Diff(out.all[0].app, again.all[0].app); diff != "" {
			t.Errorf("%s, the second time (-first +second):\n%s", name, diff)
		}
	}
}

// rendered are the parts of a chart's objects that matter to Shipper.
type rendered struct {
	Kind, Name, Use string
	// Replicas are those of the chart, and Template the Pod template as the chart renders it.
	Replicas int32
	Template map[string]any
	// Selector is what Shipper makes of the Service's.
	Selector map[string]string
}

func TestConvertedChartsRender(t *testing.T) {
	target := render.Target{ReleaseName: "web-6f19aa85-0", Namespace: "shop", App: "web"}
	production := map[string]string{"shipper-app": "web", "shipper-traffic-status": "enabled"}
	preview := map[string]string{"shipper-app": "web", "shipper-release": "none"}
	for name, want := range map[string][]rendered{
		"canary": {
			{Kind: "Service", Name: "storefront", Use: "production", Selector: production},
			{Kind: "Deployment", Name: "web-6f19aa85-0", Replicas: 5},
		},
		"bluegreen": {
			{Kind: "Service", Name: "web-preview", Use: "preview", Selector: preview},
			{Kind: "Service", Name: "web", Use: "production", Selector: production},
			{Kind: "Deployment", Name: "web-6f19aa85-0", Replicas: 3},
		},
		"everything": {
			{Kind: "Service", Name: "web-canary", Use: "preview", Selector: preview},
			{Kind: "Service", Name: "web", Use: "production", Selector: production},
			{Kind: "Deployment", Name: "web-6f19aa85-0", Replicas: 10},
		},
	} {
		t.Run(name, func(t *testing.T) {
			raw, out := converting(t, name)
			want[len(want)-1].Template = templateIn(t, raw)
			opened, err := render.OpenInline(out.all[0].app.Spec.Template.Chart.Archive)
			if err != nil {
				t.Fatal(err)
			}
			manifest, err := opened.Render(t.Context(), out.all[0].app.Spec.Template.Values, target)
			if err != nil {
				t.Fatal(err)
			}
			prepared, err := manifest.Prepare(target)
			if err != nil {
				t.Fatal(err)
			}
			var got []rendered
			for i, o := range prepared {
				one := rendered{Kind: o.GetKind(), Name: o.GetName(), Use: o.GetLabels()["shipper-lb"]}
				if one.Kind == "Deployment" {
					one.Replicas = manifest.Replicas()
					one.Template, _, _ = unstructured.NestedMap(manifest.Objects[i].Object, "spec", "template")
				} else {
					one.Selector, _, _ = unstructured.NestedStringMap(o.Object, "spec", "selector")
				}
				got = append(got, one)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
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
