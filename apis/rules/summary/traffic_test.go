// SPDX-License-Identifier: Apache-2.0

package summary_test

import (
	"testing"

	"shipper.dev/shipper/apis/rules/summary"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestAShareOfTheTrafficIsThatOfTheRequestedWeights(t *testing.T) {
	of := func(eu, us uint32) *shipper.TrafficTarget {
		tt := &shipper.TrafficTarget{}
		tt.Spec.Clusters = []shipper.ClusterTrafficTarget{{Name: "eu", Weight: eu}, {Name: "us", Weight: us}}
		return tt
	}
	for sentence, tc := range map[string]struct {
		target, other *shipper.TrafficTarget
		want          string
	}{
		"it has all":            {of(100, 100), of(0, 0), "100 %"},
		"it has none":           {of(0, 0), of(100, 100), "0 %"},
		"nothing has any":       {of(0, 0), nil, "0 %"},
		"half":                  {of(50, 50), of(50, 50), "50 %"},
		"weights are no shares": {of(1, 1), of(2, 2), "33 %"},
		"clusters differ":       {of(50, 100), of(50, 0), "50-100 %"},
		"it has no clusters":    {&shipper.TrafficTarget{}, of(1, 1), ""},
		"there is no target":    {nil, of(1, 1), ""},
	} {
		if got := summary.Traffic(tc.target, []*shipper.TrafficTarget{tc.other, tc.target}); got != tc.want {
			t.Errorf("%s: %q, want %q", sentence, got, tc.want)
		}
	}
}
