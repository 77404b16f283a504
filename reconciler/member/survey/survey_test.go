// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

func TestObjectsAreSummedUp(t *testing.T) {
	object := func(kind, name, status, reason, message string) Seen {
		return Seen{APIVersion: "v1", Kind: kind, Name: name, Health: fleet.Health{Status: status, Reason: reason, Message: message}}
	}
	many := func(n int, of func(i int) Seen) []Seen {
		var out []Seen
		for i := range n {
			out = append(out, of(i))
		}
		return out
	}
	kind := func(name string, total, healthy int32) shipper.InstalledKind {
		return shipper.InstalledKind{APIVersion: "v1", Kind: name, Total: total, Healthy: healthy}
	}
	bad := func(kind, name, status, reason, message string) shipper.UnhealthyObject {
		return shipper.UnhealthyObject{APIVersion: "v1", Kind: kind, Name: name, Status: status, Reason: reason, Message: message}
	}
	for sentence, tc := range map[string]struct {
		all  []Seen
		want shipper.InstalledObjects
	}{
		"nothing": {},
		"all is well": {
			[]Seen{object("B", "x", "Current", "", ""), object("A", "y", "Current", "", ""), object("B", "z", "Current", "", "")},
			shipper.InstalledObjects{Total: 3, Healthy: 3, Kinds: []shipper.InstalledKind{kind("A", 1, 1), kind("B", 2, 2)}},
		},
		"failed ones come first, unknown ones last": {
			[]Seen{
				object("A", "a", "Unknown", "NotWatched", ""), object("A", "b", "InProgress", "Waiting", ""), object("A", "c", "Current", "", ""),
				object("A", "d", "Failed", "Broken", "it broke"), object("A", "e", "NotFound", "", ""),
			},
			shipper.InstalledObjects{Total: 5, Healthy: 1, Kinds: []shipper.InstalledKind{kind("A", 5, 1)}, Unhealthy: []shipper.UnhealthyObject{
				bad("A", "d", "Failed", "Broken", "it broke"), bad("A", "b", "InProgress", "Waiting", ""), bad("A", "e", "NotFound", "", ""),
				bad("A", "a", "Unknown", "NotWatched", ""),
			}},
		},
		"more than can be named": {
			many(500, func(i int) Seen { return object("A", fmt.Sprint(i), "Failed", "R", strings.Repeat("x", 1000)) }),
			shipper.InstalledObjects{Total: 500, Kinds: []shipper.InstalledKind{kind("A", 500, 0)}, Unhealthy: func() []shipper.UnhealthyObject {
				var out []shipper.UnhealthyObject
				for i := range 10 {
					out = append(out, bad("A", fmt.Sprint(i), "Failed", "R", strings.Repeat("x", 253)+"…"))
				}
				return out
			}()},
		},
		"more kinds than can be counted": {
			many(60, func(i int) Seen { return object(fmt.Sprintf("K%02d", i), "x", "Current", "", "") }),
			shipper.InstalledObjects{Total: 60, Healthy: 60, Kinds: func() (out []shipper.InstalledKind) {
				for i := range 50 {
					out = append(out, kind(fmt.Sprintf("K%02d", i), 1, 1))
				}
				return out
			}()},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(&tc.want, Sum(tc.all)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
