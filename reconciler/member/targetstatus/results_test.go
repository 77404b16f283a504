// SPDX-License-Identifier: Apache-2.0

package targetstatus

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func target(uid types.UID, generation int64) *shipper.CapacityTarget {
	out := &shipper.CapacityTarget{}
	out.Namespace, out.Name, out.UID, out.Generation = "a", "web-0", uid, generation
	return out
}

func TestResultsAreThoseOfOneGenerationOfATarget(t *testing.T) {
	r := NewResults[string]()
	r.Put(target("1", 1), "west", "before the edit")
	r.Put(target("1", 2), "east", "after the edit")
	for sentence, tc := range map[string]struct {
		of   *shipper.CapacityTarget
		want map[string]string
	}{
		"the generation before":                {target("1", 1), map[string]string{"west": "before the edit"}},
		"the generation after":                 {target("1", 2), map[string]string{"east": "after the edit"}},
		"one that no pass has seen":            {target("1", 3), map[string]string{}},
		"another target that has the name now": {target("2", 2), map[string]string{}},
	} {
		if diff := cmp.Diff(tc.want, r.Of(tc.of)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", sentence, diff)
		}
	}
	r.Put(target("1", 2), "west", "after the edit too")
	want := map[string]string{"west": "after the edit too", "east": "after the edit"}
	if diff := cmp.Diff(want, r.Of(target("1", 2))); diff != "" {
		t.Errorf("a pass in each cluster: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{}, r.Of(target("1", 1))); diff != "" {
		t.Errorf("the generation before is known no more: -want +got:\n%s", diff)
	}
	r.Forget(client.ObjectKeyFromObject(target("1", 2)))
	if diff := cmp.Diff(map[string]string{}, r.Of(target("1", 2))); diff != "" {
		t.Errorf("a target that is gone: -want +got:\n%s", diff)
	}
}
