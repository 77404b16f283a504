// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"testing"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestLotsInWords(t *testing.T) {
	usual := &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{
		step("staging", 0, 100, 0, 100), step("half", 50, 50, 50, 50), step("full on", 100, 0, 100, 0),
	}}
	half := &shipper.RolloutStrategy{Steps: usual.Steps[:2]}
	dark := &shipper.RolloutStrategy{Steps: usual.Steps[:1]}
	for _, tc := range []struct {
		of   Workload
		in   *shipper.RolloutStrategy
		want string
	}{
		{Workload{Kind: "Deployment", Name: "web", Replicas: 3}, usual, "side by side from step 1 (half) on"},
		{Workload{Kind: "Deployment", Name: "web"}, usual, "side by side"},
		{Workload{Kind: "Deployment", Name: "files", InPlace: true, Replicas: 1}, usual, "in place at step 2 (full on)"},
		{Workload{Kind: "Deployment", Name: "files", InPlace: true, Replicas: 1}, half, "in place, at none of these steps"},
		{Workload{Kind: "DaemonSet", Name: "agent", InPlace: true}, usual, "in place at step 2 (full on)"},
		{
			Workload{Kind: "StatefulSet", Name: "db", InPlace: true, Replicas: 3}, usual,
			"in place from step 1 (half) on, all of it at step 2 (full on)",
		},
		{Workload{Kind: "StatefulSet", Name: "db", InPlace: true, Replicas: 3}, half, "in place from step 1 (half) on"},
		{Workload{Kind: "StatefulSet", Name: "db", InPlace: true, Replicas: 3}, dark, "in place, at none of these steps"},
		{Workload{Kind: "StatefulSet", Name: "db", InPlace: true}, usual, "in place at step 2 (full on)"},
		{Workload{Kind: "Job", Name: "migrate"}, usual, "run once, when the Release is installed"},
		{Workload{Kind: "Deployment", Name: "web", Replicas: 3}, nil, "side by side"},
	} {
		if got := tc.of.Lot(tc.in); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.of, got, tc.want)
		}
	}
}
