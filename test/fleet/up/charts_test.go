// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestAChartAndAFolderOfChartsAreServed(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"one", "two", "no-chart"} {
		if err := os.MkdirAll(filepath.Join(folder, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if name == "no-chart" {
			continue
		}
		text := "name: " + name + "\nversion: 1.2.3\n"
		if err := os.WriteFile(filepath.Join(folder, name, "Chart.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string][]string{folder: {"one 1.2.3", "two 1.2.3"}, filepath.Join(folder, "two"): {"two 1.2.3"}} {
		all, err := userCharts(path)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range all {
			got = append(got, a.Name+" "+a.Version)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", path, diff)
		}
	}
	if _, err := userCharts(filepath.Join(folder, "no-chart")); err == nil || !strings.Contains(err.Error(), "set CHARTS") {
		t.Errorf("a folder without a chart: %v", err)
	}
}

func TestAnApplicationIsWrittenForEachChart(t *testing.T) {
	all, err := userCharts("../../charts/hello-world-0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	text, err := application(all[0], "http://127.0.0.1:1/charts")
	if err != nil {
		t.Fatal(err)
	}
	app := &shipper.Application{}
	if err := yaml.UnmarshalStrict(text, app); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if got := app.Spec.Template.Chart; got.Name != "hello-world" || got.Version != "0.1.0" || len(app.Spec.Template.Strategy.Steps) != 2 {
		t.Errorf("the Application is\n%s", text)
	}
}
