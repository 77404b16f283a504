// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"testing"
)

// TestAnchorsOfApplicationsHaveDifferentNames has enough names that those of 32 bits would collide.
func TestAnchorsOfApplicationsHaveDifferentNames(t *testing.T) {
	seen := map[string]int{}
	for i := range 300_000 {
		name := PlacedAnchorName("team", fmt.Sprintf("app-%x", i*7919))
		if other, taken := seen[name]; taken {
			t.Fatalf("%d and %d have the anchor %s", other, i, name)
		}
		seen[name] = i
	}
}

func TestFullReplicasAreThoseOfTheAnnotation(t *testing.T) {
	for text, want := range map[string]int32{"3": 3, "0": 0, "": 0, "-1": 0, "many": 0, "99999999999": 0} {
		if got := FullReplicas(map[string]string{ReplicasAnnotation: text}); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if got := FullReplicas(nil); got != 0 {
		t.Errorf("none: %d", got)
	}
}
