// SPDX-License-Identifier: Apache-2.0

package history

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// A user deletes the newest Release, which is how one aborts, and the cache hears late of it: whoever deletes the Release before it
// because its place is taken must not do that half a minute after it was last looked.
func TestADeletionIsDecidedByWhatIs(t *testing.T) {
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "app"}}
	cache := shown{release: "9", installation: "8", capacity: "10", percent: 50}
	live, known := cache, NewKnown()
	r := &Reader{cached: &cache, live: &live}
	for range 2 {
		if _, err := r.Confirmed(t.Context(), app, known, then); err != nil {
			t.Fatal(err)
		}
	}
	live.release = ""
	known.Doubt(client.ObjectKeyFromObject(app))
	h, err := r.Confirmed(t.Context(), app, known, then.Add(30*time.Second))
	if err != nil || len(h.All) > 0 {
		t.Errorf("30 s after it was deleted it is decided by %d Release that is no more: %v", len(h.All), err)
	}
}
