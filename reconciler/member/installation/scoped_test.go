// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestWhatRemainsOfATargetWithoutAnAnchor(t *testing.T) {
	it := &shipper.InstallationTarget{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Labels: map[string]string{shipper.AppLabel: "web"}}}
	seen := shipper.ClusterScopedObject{Kind: "ClusterRole", Name: "reader", UID: "u", Digest: "d"}
	siblings := map[string]bool{"web-2": true}
	tests := map[string]struct {
		change func(o *metav1.PartialObjectMetadata)
		// want is whether it goes, and pending whether it does where it is not known to have been written.
		want, pending bool
	}{
		"the object that was seen":              {func(*metav1.PartialObjectMetadata) {}, true, true},
		"one that a user has labelled more":     {func(o *metav1.PartialObjectMetadata) { o.Labels["more"] = "" }, true, true},
		"another of its name":                   {func(o *metav1.PartialObjectMetadata) { o.UID = "v" }, false, true},
		"what was written from other manifests": {func(o *metav1.PartialObjectMetadata) { o.Annotations = nil }, false, true},
		"what another Release took over": {func(o *metav1.PartialObjectMetadata) {
			o.Labels[shipper.OwnedByLabel] = "web-2"
		}, false, false},
		"what another Release took over that is gone": {func(o *metav1.PartialObjectMetadata) {
			o.Labels[shipper.OwnedByLabel], o.Annotations = "web-3", nil
		}, true, true},
		"another of its name by a Release that is gone": {func(o *metav1.PartialObjectMetadata) {
			o.Labels[shipper.OwnedByLabel], o.UID = "web-3", "v"
		}, false, false},
		"what says no more whose it is": {func(o *metav1.PartialObjectMetadata) {
			delete(o.Labels, shipper.OwnedByLabel)
		}, false, false},
		"what another Application took over": {func(o *metav1.PartialObjectMetadata) {
			o.Labels[shipper.AppLabel] = "shop"
		}, false, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				UID: "u", Annotations: map[string]string{shipper.InstalledDigestAnnotation: "d"},
				Labels: map[string]string{shipper.AppLabel: "web", shipper.OwnedByLabel: "web-1"},
			}}
			tc.change(live)
			if got := remains(it, scopedEntry{ClusterScopedObject: seen}, live, siblings); got != tc.want {
				t.Errorf("remains = %t, want %t", got, tc.want)
			}
			if got := remains(it, scopedEntry{ClusterScopedObject: seen, Pending: true}, live, siblings); got != tc.pending {
				t.Errorf("pending: remains = %t, want %t", got, tc.pending)
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

func TestWhichListsKeepAnObject(t *testing.T) {
	it := &shipper.InstallationTarget{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-1", Labels: map[string]string{shipper.AppLabel: "web"},
	}}
	list := func(namespace, owner, target, name string) corev1.ConfigMap {
		return corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Labels: map[string]string{shipper.OwnedByLabel: target},
				Annotations: map[string]string{shipper.PlacedOwnerAnnotation: owner},
			},
			Data: map[string]string{scopedKey: `[{"apiVersion":"v1","kind":"Node","name":"` + name + `","uid":"u","pending":true}]`},
		}
	}
	others, siblings := listedByOthers(it, []corev1.ConfigMap{
		list(shipper.SystemNamespace, "shop/web", "web-1", "own"),
		list(shipper.SystemNamespace, "shop/web", "web-2", "of a sibling"),
		list(shipper.SystemNamespace, "work/web", "web-1", "of another namespace"),
		list("shop", "work/web", "web-1", "written by a tenant"),
		{ObjectMeta: metav1.ObjectMeta{Namespace: shipper.SystemNamespace}, Data: map[string]string{inventoryKey: "[]"}},
	})
	if diff := cmp.Diff([]item{{APIVersion: "v1", Kind: "Node", Name: "of another namespace"}}, others); diff != "" {
		t.Errorf("others (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"web-2": true}, siblings); diff != "" {
		t.Errorf("siblings (-want +got):\n%s", diff)
	}
}
