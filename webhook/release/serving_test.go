// SPDX-License-Identifier: Apache-2.0

package release

import (
	"testing"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestServedShareIsOfTheTrafficOfAllReleases(t *testing.T) {
	target := func(name string, weights map[string]uint32) shipper.TrafficTarget {
		tt := shipper.TrafficTarget{}
		tt.Name = name
		for cluster, weight := range weights {
			tt.Status.Clusters = append(tt.Status.Clusters, shipper.ClusterTrafficStatus{Name: cluster, AchievedTraffic: weight})
		}
		return tt
	}
	for want, targets := range map[string][]shipper.TrafficTarget{
		"":                                   {target("web-0", map[string]uint32{"a": 0}), target("web-1", map[string]uint32{"a": 100})},
		"50 % of the traffic in 1 cluster":   {target("web-0", map[string]uint32{"a": 3, "b": 0}), target("web-1", map[string]uint32{"a": 3})},
		"100 % of the traffic in 2 clusters": {target("web-0", map[string]uint32{"a": 100, "b": 7})},
		"1 to 50 % of the traffic in 2 clusters": {
			target("web-0", map[string]uint32{"a": 1, "b": 50}), target("web-1", map[string]uint32{"a": 999, "b": 50}),
		},
	} {
		if got := servedShare("web-0", targets); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
