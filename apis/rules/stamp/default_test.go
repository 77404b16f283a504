// SPDX-License-Identifier: Apache-2.0

package stamp_test

import (
	"testing"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestADefaultWrittenOutMakesNoRelease: one cluster of a region is what an absent number means.
func TestADefaultWrittenOutMakesNoRelease(t *testing.T) {
	in := func(replicas *int32) *shipper.ReleaseEnvironment {
		return &shipper.ReleaseEnvironment{ClusterRequirements: shipper.ClusterRequirements{
			Regions: []shipper.RegionRequirement{{Name: "eu"}, {Name: "us", Replicas: replicas}},
		}}
	}
	absent, one, none, two := in(nil), in(ptr(int32(1))), in(ptr(int32(0))), in(ptr(int32(2)))
	for sentence, tc := range map[string]struct {
		a, b *shipper.ReleaseEnvironment
		same bool
	}{
		"absent and 1": {absent, one, true}, "1 and absent": {one, absent, true},
		"absent and 0": {absent, none, false}, "1 and 2": {one, two, false}, "0 and 2": {none, two, false},
	} {
		x, _ := stamp.Mark(*tc.a)
		y, _ := stamp.Mark(*tc.b)
		if same := stamp.SameEnvironment(tc.a, tc.b); same != tc.same || (x == y) != tc.same {
			t.Errorf("%s: same %t, marks %s and %s", sentence, same, x, y)
		}
	}
	if one.ClusterRequirements.Regions[1].Replicas == nil {
		t.Error("comparing has changed what is compared")
	}
	hash, _ := stamp.Hash(*one)
	if again, _ := stamp.Hash(*absent); hash == again {
		t.Error("the hash in names of Releases is no longer the original's")
	}
}
