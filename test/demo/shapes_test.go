// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/lots"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/cmd/shipperctl/chartcheck"
	"shipper.dev/shipper/test/charts"
)

// replication are the values of the demonstration that change what a chart renders.
var replication = map[string]any{"architecture": "replication", "readReplicas": map[string]any{"replicaCount": int64(3)}}

// rows are the workloads of the demonstration's charts, and the Services that move.
type rows struct{ Workloads, Services []string }

// TestShapesAreThoseOfThePopularCharts compares the generated charts, and those of their projects where they are at hand, with what the
// demonstration says of them.
func TestShapesAreThoseOfThePopularCharts(t *testing.T) {
	want := map[string]rows{
		"podinfo":   {[]string{"Deployment podinfo: side by side"}, []string{"podinfo"}},
		"wordpress": {[]string{"Deployment wordpress: in place", "StatefulSet wordpress-mariadb: in place"}, nil},
		"postgresql": {
			[]string{"StatefulSet postgresql-primary: in place", "StatefulSet postgresql-read: in place"}, nil,
		},
	}
	shop := rows{Services: slices.Sorted(slices.Values(boutiqueServices))}
	for _, name := range boutique {
		shop.Workloads = append(shop.Workloads, "Deployment "+name+": side by side")
	}
	want["onlineboutique"] = shop
	made, err := shapes()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, described(t, made)); diff != "" {
		t.Errorf("generated (-want +got)\n%s", diff)
	}
	real, whose, err := popularArchives("../..")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, described(t, real)); diff != "" {
		t.Errorf("%s (-want +got)\n%s", whose, diff)
	}
}

// described checks charts as `shipperctl chart check` does.
func described(t *testing.T, archives []charts.Archive) map[string]rows {
	t.Helper()
	out := map[string]rows{}
	for _, archive := range archives {
		c, err := render.Open(archive.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		values := shipper.ChartValues{}
		if archive.Name == "postgresql" {
			values = replication
		}
		report, err := chartcheck.ReportOf(t.Context(), c, &values, archive.Name, namespace)
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Refused) > 0 || len(report.Rights) > 0 {
			t.Errorf("%s: refused %q, lacks %v", archive.Name, report.Refused, report.Rights)
		}
		var is rows
		for _, w := range report.Workloads {
			is.Workloads = append(is.Workloads, w.Workload+": "+string(w.Lot))
		}
		for _, s := range report.Services {
			if s.Use == lots.Production {
				is.Services = append(is.Services, s.Service)
			}
		}
		slices.Sort(is.Workloads)
		slices.Sort(is.Services)
		out[archive.Name] = is
	}
	return out
}
