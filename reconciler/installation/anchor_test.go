// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestAnchorSaysWhatItWasWrittenWith(t *testing.T) {
	it := &shipper.InstallationTarget{ObjectMeta: metav1.ObjectMeta{UID: "this"}}
	one, two := item{Kind: "Service", Name: "one", Digest: "1"}, item{Kind: "Service", Name: "two", Digest: "2"}
	changed := one
	changed.Digest = "3"
	written := &anchor{targetUID: "this", rendered: "from", inventory: []item{one}}
	tests := map[string]struct {
		anchor    *anchor
		inventory []item
		rendered  string
		want      bool
	}{
		"there is none":                   {nil, nil, "", false},
		"as it was written":               {written, []item{one}, "from", true},
		"one object more":                 {written, []item{one, two}, "from", false},
		"another form of the same object": {written, []item{changed}, "from", false},
		"not done yet":                    {written, []item{one}, "", false},
		"written for an earlier target":   {&anchor{targetUID: "that", rendered: "from", inventory: []item{one}}, []item{one}, "from", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.anchor.says(it, tc.inventory, tc.rendered); got != tc.want {
				t.Errorf("says %t, want %t", got, tc.want)
			}
		})
	}
}
