// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"testing"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestAMisspelledRegionIsAnsweredWithTheNearestOne(t *testing.T) {
	in := func(regions ...string) []shipper.Cluster {
		out := make([]shipper.Cluster, len(regions))
		for i, region := range regions {
			out[i].Spec.Region = region
		}
		return out
	}
	for sentence, tc := range map[string]struct {
		name     string
		clusters []shipper.Cluster
		want     string
	}{
		"one letter is wrong":             {"eu-wast", in("us-east", "eu-west"), ` (no cluster has this region; did you mean "eu-west"?)`},
		"two regions are as near":         {"eu-3", in("eu-2", "eu-1"), ` (no cluster has this region; did you mean "eu-1"?)`},
		"the region exists":               {"eu", in("eu", "eu2"), ""},
		"no region is near":               {"mars", in("eu-west", "us-east"), ""},
		"there are no clusters":           {"eu", nil, ""},
		"a name of one letter":            {"r", in("s"), ""},
		"a region with an empty name":     {"", in("eu-west"), ""},
		"the name is longer than a label": {string(make([]byte, 1000)), in("eu"), ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := suggestion(tc.name, tc.clusters); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
