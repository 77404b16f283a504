// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestWhereNoPodsAreAndWhereTheyAreAwaited(t *testing.T) {
	tests := map[string]struct {
		is               shipper.ClusterCapacityTarget
		podless, awaited bool
	}{
		"some of some":                         {shipper.ClusterCapacityTarget{Name: "east", TotalReplicaCount: 10, Percent: 1}, false, true},
		"none of some":                         {shipper.ClusterCapacityTarget{Name: "east", TotalReplicaCount: 10}, false, false},
		"all of none":                          {shipper.ClusterCapacityTarget{Name: "east", Percent: 100}, true, false},
		"as many as are found, whatever it is": {shipper.ClusterCapacityTarget{Name: "east", TotalReplicaCount: 10, AsFound: true}, false, false},
	}
	of := func(c ...shipper.ClusterCapacityTarget) *shipper.CapacityTarget {
		return &shipper.CapacityTarget{Spec: shipper.CapacityTargetSpec{Clusters: c}}
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := podlessIn(of(tc.is)).Equal(sets.New("east")); got != tc.podless {
				t.Errorf("no Pods: %v", got)
			}
			if got := awaitedIn(of(tc.is)).Equal(sets.New("east")); got != tc.awaited {
				t.Errorf("awaited: %v", got)
			}
		})
	}
}
