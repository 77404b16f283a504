// SPDX-License-Identifier: Apache-2.0

package chartcheck_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/lots"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/cmd/shipperctl/chartcheck"
	"shipper.dev/shipper/test/charts"
)

var update = flag.Bool("update", false, "write the tables of docs/popular-charts.md")

// The page, and what is around its tables.
const (
	popularPage = "../../../docs/popular-charts.md"
	tablesBegin = "<!-- tables: hack/update-popular-docs.sh writes them -->\n"
	tablesEnd   = "<!-- end of tables -->\n"
)

// TestPopularChartsOfThePage compares the tables of docs/popular-charts.md with what `shipperctl chart check` says of these charts.
func TestPopularChartsOfThePage(t *testing.T) {
	rows, refused := map[string]string{}, map[string]string{}
	unedited := 0
	// The group ends before the page is compared: each chart is a parallel test.
	t.Run("charts", func(t *testing.T) {
		var mu sync.Mutex
		charts.EachPopular(t, "../../..", func(t *testing.T, of charts.PopularArchive) {
			report := reportOf(t, of)
			mu.Lock()
			defer mu.Unlock()
			if len(report.Refused) > 0 {
				refused[of.Name] = strings.Join(report.Refused, "; ")
			} else if len(of.Values) == 0 {
				unedited++
			}
			rows[of.Name] = rowOf(t, of, report)
		})
	})
	if len(rows) == 0 {
		t.Skip("no popular charts")
	}
	page, err := os.ReadFile(popularPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), tablesBegin)
	_, after, ended := strings.Cut(rest, tablesEnd)
	if !found || !ended {
		t.Fatalf("%s has no place for tables", popularPage)
	}
	want := before + tablesBegin + tablesOf(rows, refused, unedited) + tablesEnd + after
	if *update {
		if err := os.WriteFile(popularPage, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(page), want); diff != "" {
		t.Errorf("run hack/update-popular-docs.sh (-page +charts)\n%s", diff)
	}
}

func reportOf(t *testing.T, of charts.PopularArchive) *chartcheck.Report {
	t.Helper()
	c, err := render.Open(of.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	values := shipper.ChartValues(of.Values)
	report, err := chartcheck.ReportOf(t.Context(), c, &values, of.Name, "shop")
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Workloads) == 0 || report.Text(80) == "" {
		t.Errorf("nothing is said of it: %+v", report)
	}
	return report
}

// tablesOf is the part of the page that is about the charts.
func tablesOf(rows, refused map[string]string, unedited int) string {
	var out strings.Builder
	fmt.Fprintf(&out, "\nOf %d charts, %d roll out without a change or a value", len(rows), unedited)
	if more := len(rows) - unedited - len(refused); more > 0 {
		fmt.Fprintf(&out, ", %d with values that the chart itself asks for", more)
	}
	if len(refused) > 0 {
		fmt.Fprintf(&out, ", %d refused", len(refused))
	}
	out.WriteString(".\n\n| chart | rolls out | side by side | in place, at its step | Services that move | rights to give |\n" +
		"|---|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		out.WriteString(rows[name])
	}
	for _, name := range slices.Sorted(maps.Keys(refused)) {
		fmt.Fprintf(&out, "\n**%s** is refused:\n\n```text\n%s\n```\n", name, refused[name])
	}
	return out.String() + "\n"
}

// rowOf is the row of a chart.
func rowOf(t *testing.T, of charts.PopularArchive, report *chartcheck.Report) string {
	t.Helper()
	rolls := "unedited"
	switch {
	case len(report.Refused) > 0:
		rolls = "refused, see below"
	case len(of.Values) > 0:
		values, err := json.Marshal(of.Values)
		if err != nil {
			t.Fatal(err)
		}
		rolls = "with `" + string(values) + "`"
	}
	var sideBySide, inPlace, services, rights []string
	for _, w := range report.Workloads {
		kind, name, _ := strings.Cut(w.Workload, " ")
		switch {
		case w.Lot == lots.SideBySide && kind == "Deployment":
			sideBySide = append(sideBySide, name)
		case w.Lot == lots.SideBySide:
			sideBySide = append(sideBySide, w.Workload)
		case w.Why == kind:
			inPlace = append(inPlace, w.Workload)
		default:
			inPlace = append(inPlace, w.Workload+": "+w.Why)
		}
	}
	for _, s := range report.Services {
		if s.Use == lots.Production {
			services = append(services, s.Service)
		}
	}
	for _, right := range report.Rights {
		if len(right.For) > 0 {
			rights = append(rights, right.Resource)
		}
	}
	return fmt.Sprintf("| %s %s | %s | %s | %s | %s | %s |\n", report.Chart, report.Version, rolls,
		some(sideBySide, "Deployments", ", "), some(inPlace, "workloads", "; "), some(services, "Services", ", "), some(rights, "kinds", ", "))
}

// some are things in a cell, or their number if they are many.
func some(things []string, called, between string) string {
	switch {
	case len(things) == 0:
		return "none"
	case len(things) > 5:
		return fmt.Sprintf("%d %s", len(things), called)
	default:
		return strings.Join(things, between)
	}
}
