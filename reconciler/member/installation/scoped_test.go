// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestWhatRemainsOfATargetWithoutAnAnchor(t *testing.T) {
	it := &shipper.InstallationTarget{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Labels: map[string]string{shipper.AppLabel: "web"}}}
	seen := shipper.ClusterScopedObject{Kind: "ClusterRole", Name: "reader", UID: "u", Digest: "d"}
	tests := map[string]struct {
		change func(o *metav1.PartialObjectMetadata)
		want   bool
	}{
		"the object that was seen":              {func(*metav1.PartialObjectMetadata) {}, true},
		"one that a user has labelled more":     {func(o *metav1.PartialObjectMetadata) { o.Labels["more"] = "" }, true},
		"another of its name":                   {func(o *metav1.PartialObjectMetadata) { o.UID = "v" }, false},
		"what was written from other manifests": {func(o *metav1.PartialObjectMetadata) { o.Annotations = nil }, false},
		"what another Release took over": {func(o *metav1.PartialObjectMetadata) {
			o.Labels[shipper.OwnedByLabel] = "web-2"
		}, false},
		"what another Application took over": {func(o *metav1.PartialObjectMetadata) {
			o.Labels[shipper.AppLabel] = "shop"
		}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				UID: "u", Annotations: map[string]string{shipper.InstalledDigestAnnotation: "d"},
				Labels: map[string]string{shipper.AppLabel: "web", shipper.OwnedByLabel: "web-1"},
			}}
			tc.change(live)
			if got := remains(it, seen, live); got != tc.want {
				t.Errorf("remains = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestWhatIsKnownOfAPassThatDidNotEnd(t *testing.T) {
	object := func(name string, uid types.UID) shipper.ClusterScopedObject {
		return shipper.ClusterScopedObject{APIVersion: "v1", Kind: "Node", Name: name, UID: uid}
	}
	known := []shipper.ClusterScopedObject{object("a", "1"), object("b", "1")}
	found := []shipper.ClusterScopedObject{object("b", "2"), object("c", "1")}
	want := []shipper.ClusterScopedObject{object("a", "1"), object("b", "2"), object("c", "1")}
	if diff := cmp.Diff(want, mergeScoped(known, found)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(known, mergeScoped(known, nil)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
