// SPDX-License-Identifier: Apache-2.0

package rolloutblock

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestAScopeThatNothingHasIsWarnedOf(t *testing.T) {
	var eu, us shipper.Cluster
	eu.Name, eu.Spec.Region = "eu-west-1", "eu-west"
	us.Name, us.Spec.Region = "us-east-1", "us-east"
	for sentence, tc := range map[string]struct {
		scope    *shipper.RolloutBlockScope
		clusters []shipper.Cluster
		want     []string
	}{
		"no scope": {nil, []shipper.Cluster{eu}, nil},
		"what there is": {
			&shipper.RolloutBlockScope{Regions: []string{"eu-west"}, Clusters: []string{"us-east-1"}}, []shipper.Cluster{eu, us}, nil,
		},
		"no cluster is seen": {&shipper.RolloutBlockScope{Regions: []string{"eu-wst"}}, nil, nil},
		"misspelt, and another": {
			&shipper.RolloutBlockScope{Regions: []string{"us-east", "eu-wst"}, Clusters: []string{"tokyo"}}, []shipper.Cluster{eu, us},
			[]string{
				`spec.scope.regions[1]: no cluster has the region "eu-wst", so this stops nothing there; did you mean "eu-west"?`,
				`spec.scope.clusters[0]: there is no cluster "tokyo", so this stops nothing there`,
			},
		},
	} {
		if diff := cmp.Diff(tc.want, unknown(tc.scope, tc.clusters)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}
