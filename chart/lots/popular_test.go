// SPDX-License-Identifier: Apache-2.0

package lots_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/lots"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/test/charts"
)

var update = flag.Bool("update", false, "write the golden files in testdata")

// TestLotsOfPopularCharts says what becomes of widely used charts, unedited.
func TestLotsOfPopularCharts(t *testing.T) {
	charts.EachPopular(t, "../..", func(t *testing.T, of charts.PopularArchive) {
		checkLots(t, of.Archive, of.Values, filepath.Join("testdata", "popular", of.Name+".txt"))
	})
}

// TestLotsOfSmallCharts says the same of charts of the shapes that the popular ones have, and of some that they do not have.
func TestLotsOfSmallCharts(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "small", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no charts: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			packed, err := charts.PackFiles(name, "1.0.0", map[string]string{
				"Chart.yaml": "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n", "templates/all.yaml": string(content),
			})
			if err != nil {
				t.Fatal(err)
			}
			checkLots(t, packed, nil, strings.TrimSuffix(file, ".yaml")+".txt")
		})
	}
}

// checkLots compares what becomes of a chart with a golden file, and holds it against the laws.
func checkLots(t *testing.T, packed charts.Archive, values map[string]any, golden string) {
	t.Helper()
	c, err := render.Open(packed.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	given := shipper.ChartValues(values)
	target := targetOf(packed.Name, 0)
	plain := target
	plain.Labels = nil
	naming, err := c.Naming(t.Context(), &given, plain)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("by %s\n", naming)
	if naming == shipper.NamingByApplication {
		manifest, err := c.Render(t.Context(), &given, target)
		if err != nil {
			t.Fatal(err)
		}
		table, err := manifest.Lots(target)
		text += described(table)
		if refused := len(table.Refused) > 0; (err != nil) != refused {
			t.Errorf("error %v, refused %q", err, table.Refused)
		}
		if err == nil {
			checkLaws(t, manifest, packed.Name)
		}
	}
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// targetOf is a Release of an Application named by Application.
func targetOf(app string, iteration int) render.Target {
	return render.Target{
		Naming: shipper.NamingByApplication, ReleaseName: fmt.Sprintf("%s-6f19aa85-%d", app, iteration), Namespace: "shop", App: app,
		Labels: map[string]string{shipper.ReleaseHashLabel: "6f19aa85", "app": "of-the-application", "team": "web"},
	}
}

// described is what becomes of a chart, a line each for its objects and Services; objects that are shared without a reason are counted.
func described(table lots.Table) string {
	var out strings.Builder
	quiet := 0
	fmt.Fprintf(&out, "%d Pods\n", table.Replicas())
	for i := range table.Entries {
		e := &table.Entries[i]
		if e.Lot == lots.Shared && e.Reason == "" && e.Copy == nil && len(e.UsedBy) == 0 {
			quiet++
			continue
		}
		fmt.Fprintf(&out, "%s: %s", e, e.Lot)
		if e.Reason != "" {
			fmt.Fprintf(&out, ", %s", e.Reason)
		}
		if now := e.Object.GetName(); now != e.Given {
			fmt.Fprintf(&out, ", as %s", now)
		}
		if e.Copy != nil {
			fmt.Fprintf(&out, ", copied as %s", e.Copy.GetName())
		}
		if len(e.UsedBy) > 0 {
			fmt.Fprintf(&out, ", used by %s", strings.Join(e.UsedBy, ", "))
		}
		if len(e.Serves) > 0 {
			fmt.Fprintf(&out, ", serves %s", strings.Join(e.Serves, ", "))
		}
		out.WriteString("\n")
	}
	fmt.Fprintf(&out, "%d more are shared\n", quiet)
	for _, s := range table.Services {
		fmt.Fprintf(&out, "Service %s: %s", s.Name, s.Use)
		switch {
		case s.Reason != "":
			fmt.Fprintf(&out, ", %s", s.Reason)
		default:
			fmt.Fprintf(&out, ", of %s", strings.Join(append(s.SideBySide, s.InPlace...), ", "))
		}
		out.WriteString("\n")
	}
	for _, sentence := range table.Warnings {
		fmt.Fprintf(&out, "warning: %s\n", sentence)
	}
	for _, sentence := range table.Refused {
		fmt.Fprintf(&out, "refused: %s\n", sentence)
	}
	return out.String()
}
