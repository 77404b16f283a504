// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

func TestObjectsAreSummedUp(t *testing.T) {
	object := func(kind, name, status, reason, message string) seen {
		return seen{item{APIVersion: "v1", Kind: kind, Name: name}, fleet.Health{Status: status, Reason: reason, Message: message}}
	}
	many := func(n int, of func(i int) seen) []seen {
		var out []seen
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
		all  []seen
		want shipper.InstalledObjects
	}{
		"nothing": {},
		"all is well": {
			[]seen{object("B", "x", "Current", "", ""), object("A", "y", "Current", "", ""), object("B", "z", "Current", "", "")},
			shipper.InstalledObjects{Total: 3, Healthy: 3, Kinds: []shipper.InstalledKind{kind("A", 1, 1), kind("B", 2, 2)}},
		},
		"failed ones come first, unknown ones last": {
			[]seen{
				object("A", "a", "Unknown", "NotWatched", ""), object("A", "b", "InProgress", "Waiting", ""), object("A", "c", "Current", "", ""),
				object("A", "d", "Failed", "Broken", "it broke"), object("A", "e", "NotFound", "", ""),
			},
			shipper.InstalledObjects{Total: 5, Healthy: 1, Kinds: []shipper.InstalledKind{kind("A", 5, 1)}, Unhealthy: []shipper.UnhealthyObject{
				bad("A", "d", "Failed", "Broken", "it broke"), bad("A", "b", "InProgress", "Waiting", ""), bad("A", "e", "NotFound", "", ""),
				bad("A", "a", "Unknown", "NotWatched", ""),
			}},
		},
		"more than can be named": {
			many(500, func(i int) seen { return object("A", fmt.Sprint(i), "Failed", "R", strings.Repeat("x", 1000)) }),
			shipper.InstalledObjects{Total: 500, Kinds: []shipper.InstalledKind{kind("A", 500, 0)}, Unhealthy: func() []shipper.UnhealthyObject {
				var out []shipper.UnhealthyObject
				for i := range 10 {
					out = append(out, bad("A", fmt.Sprint(i), "Failed", "R", strings.Repeat("x", 253)+"…"))
				}
				return out
			}()},
		},
		"more kinds than can be counted": {
			many(60, func(i int) seen { return object(fmt.Sprintf("K%02d", i), "x", "Current", "", "") }),
			shipper.InstalledObjects{Total: 60, Healthy: 60, Kinds: func() (out []shipper.InstalledKind) {
				for i := range 50 {
					out = append(out, kind(fmt.Sprintf("K%02d", i), 1, 1))
				}
				return out
			}()},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(&tc.want, summed(tc.all)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAnObjectThatWasJustWrittenIsNotMissing(t *testing.T) {
	i := &installer{}
	i.noteWritten(item{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "web", Name: "a", Digest: "new"})
	got := []fleet.Health{
		i.absent(item{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "web", Name: "a", Digest: "old"}),
		i.absent(item{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "web", Name: "b", Digest: "new"}),
	}
	if diff := cmp.Diff([]fleet.Health{{Status: "InProgress"}, {Status: "NotFound"}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
