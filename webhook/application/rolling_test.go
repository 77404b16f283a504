// SPDX-License-Identifier: Apache-2.0

package application

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestThePlanHasTheBoundsThatTheReconcilerUses(t *testing.T) {
	rolling := func(unavailable, surge string) *shipper.RolloutStrategy {
		a, b := intstr.Parse(unavailable), intstr.Parse(surge)
		return &shipper.RolloutStrategy{Rolling: &shipper.RollingClusters{MaxUnavailable: &a, MaxSurge: &b}}
	}
	before := []*shipper.Release{{}}
	for name, tc := range map[string]struct {
		env      shipper.ReleaseEnvironment
		existing []*shipper.Release
		clusters int
		want     string
	}{
		"by default": {
			shipper.ReleaseEnvironment{}, before, 9,
			"of 9 clusters, at most 3 may be without a ready version at the same time; while clusters leave, at most 3 more may have one",
		},
		"0 counts as 1": {
			shipper.ReleaseEnvironment{Strategy: rolling("50%", "0")}, before, 4,
			"of 4 clusters, at most 2 may be without a ready version at the same time; while clusters leave, at most 1 more may have one",
		},
		"the first Release": {
			shipper.ReleaseEnvironment{Strategy: rolling("1", "1")}, nil, 4,
			"of 4 clusters, all are written at the same time: none has an earlier version",
		},
		"ReportDiff": {
			shipper.ReleaseEnvironment{Strategy: rolling("1", "1"), Apply: &shipper.Apply{Type: shipper.ApplyReportDiff}}, before, 4,
			"of 4 clusters, all are compared at the same time, and nothing is written",
		},
		"no cluster": {shipper.ReleaseEnvironment{}, before, 0, ""},
	} {
		if got := describeRolling(&tc.env, tc.existing, tc.clusters); got != tc.want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, tc.want)
		}
	}
}
