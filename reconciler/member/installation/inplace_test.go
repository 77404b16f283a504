// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

func TestAnchorsThatListOtherWorkloadsInPlaceAreNews(t *testing.T) {
	anchor := func(inventory string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: shipper.AnchorName("web-0")},
			Data:       map[string]string{inventoryKey: inventory, shipper.AnchorTargetUIDKey: "1"},
		}
	}
	with, other := `[{"kind":"StatefulSet","name":"db","inPlace":true}]`, `[{"kind":"StatefulSet","name":"cache","inPlace":true}]`
	tests := map[string]struct {
		event fleet.Event
		want  bool
	}{
		"it appears":                     {fleet.Event{New: anchor(with)}, true},
		"it lists another":               {fleet.Event{Old: anchor(with), New: anchor(other)}, true},
		"it lists the same":              {fleet.Event{Old: anchor(with), New: anchor(with)}, false},
		"it lists none":                  {fleet.Event{New: anchor(`[{"kind":"Service","name":"web"}]`)}, false},
		"it is gone":                     {fleet.Event{Old: anchor(with)}, false},
		"another ConfigMap says as much": {fleet.Event{New: &corev1.ConfigMap{Data: map[string]string{inventoryKey: with}}}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := InPlaceChanged(tc.event); got != tc.want {
				t.Errorf("InPlaceChanged() = %t", got)
			}
		})
	}
}

// TestWhatAnAnchorListsIsReadOncePerVersion changes what an anchor lists, without and with another version.
func TestWhatAnAnchorListsIsReadOncePerVersion(t *testing.T) {
	anchors, m := NewAnchors(), &fleet.Member{}
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: shipper.AnchorName("web-0"), UID: "1", ResourceVersion: "1"},
		Data:       map[string]string{inventoryKey: `[{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}]`},
	}
	got := anchors.of(m, cm).Deployments
	cm.Data[inventoryKey] = strings.ReplaceAll(cm.Data[inventoryKey], "web", "other")
	got = append(slices.Clone(got), anchors.of(m, cm).Deployments...)
	cm.ResourceVersion = "2"
	got = append(got, anchors.of(m, cm).Deployments...)
	cm.DeletionTimestamp, cm.ResourceVersion = &metav1.Time{Time: time.Unix(1, 0)}, "3"
	if diff := cmp.Diff([]string{"web", "web", "other"}, got); diff != "" || anchors.of(m, cm) != nil {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAWorkloadInPlaceIsOwnedByTheAnchorsThatListIt(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}
	key := types.NamespacedName{Namespace: "shop", Name: "db"}
	all := []Installed{
		{Release: "web-0", InPlace: []InPlace{{GVK: gvk, Key: key}}, owner: metav1.OwnerReference{Name: "web-0-anchor"}},
		{Release: "web-1", owner: metav1.OwnerReference{Name: "web-1-anchor"}},
		{Release: "web-2", InPlace: []InPlace{{GVK: gvk, Key: key}}, owner: metav1.OwnerReference{Name: "web-2-anchor"}},
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	s := &Stored{Object: object, key: key}
	want := []metav1.OwnerReference{{Name: "web-0-anchor"}, {Name: "web-2-anchor"}}
	if diff := cmp.Diff(want, s.owners(nil, all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	keep := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"helm.sh/resource-policy": "keep"}}}
	if got := s.owners(keep, all); got != nil {
		t.Errorf("one that a user keeps has owners: %v", got)
	}
}

func TestAWorkloadInPlaceOfAnotherOwnerIsRefused(t *testing.T) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"})
	object.SetLabels(map[string]string{shipper.AppLabel: "web"})
	for name, labels := range map[string]map[string]string{
		"installed by Helm":      {"app.kubernetes.io/managed-by": "Helm"},
		"of another Application": {shipper.AppLabel: "other", shipper.OwnedByLabel: "other-0"},
	} {
		s := &Stored{Object: object, key: types.NamespacedName{Namespace: "shop", Name: "db"}}
		err := s.Write(t.Context(), nil, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: labels}}, nil)
		known, ok := err.(*problem) //nolint:errorlint // it is not wrapped
		if !ok || known.reason != shipper.ObjectConflict || !strings.Contains(known.message, `StatefulSet "db" cannot be changed`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
