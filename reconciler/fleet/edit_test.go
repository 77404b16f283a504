// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestEditOf(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	written := func(entries ...metav1.ManagedFieldsEntry) *metav1.ObjectMeta {
		return &metav1.ObjectMeta{Generation: 1, ResourceVersion: "7", ManagedFields: entries}
	}
	ours := metav1.ManagedFieldsEntry{
		Manager: shipper.FieldOwner, Operation: metav1.ManagedFieldsOperationApply, Time: &at,
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`),
	}
	theirs := metav1.ManagedFieldsEntry{Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate, Time: &at}
	timeless := theirs
	timeless.Time = nil
	status := theirs
	status.Subresource = "status"
	for name, tc := range map[string]struct {
		before, after *metav1.ObjectMeta
		edit          bool
	}{
		"another wrote it":               {written(ours), written(ours, theirs), true},
		"its status was written":         {written(ours), written(ours, status), false},
		"by an entry that has no time":   {written(ours), written(ours, timeless), true},
		"an entry lost its time":         {written(ours, theirs), written(ours, timeless), true},
		"nothing but entries of no time": {written(timeless), written(timeless), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := EditOf(tc.before) != EditOf(tc.after); got != tc.edit {
				t.Errorf("an edit: %v, want %v", got, tc.edit)
			}
		})
	}
}

// TestForgetTakesWhatAnybodyMayWrite is about objects of application clusters: none of them may crash the reconciler.
func TestForgetTakesWhatAnybodyMayWrite(t *testing.T) {
	object := &metav1.ObjectMeta{
		Generation: 1, Annotations: map[string]string{shipper.InstalledDigestAnnotation: "digest"},
		ManagedFields: []metav1.ManagedFieldsEntry{{}},
	}
	forget(object)
	edit := EditOf(object)
	if forget(object); EditOf(object) != edit {
		t.Error("what is remembered of an object is not what was remembered before")
	}
}

func TestEditedByOthersIsKnownAlsoWhereManagedFieldsWereDropped(t *testing.T) {
	entry := func(manager, subresource string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource}
	}
	ours, theirs := entry(shipper.FieldOwner, ""), entry("kubectl-set", "")
	for name, tc := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    bool
	}{
		"Shipper wrote it":               {[]metav1.ManagedFieldsEntry{ours}, false},
		"another wrote it":               {[]metav1.ManagedFieldsEntry{ours, theirs}, true},
		"a controller wrote its status":  {[]metav1.ManagedFieldsEntry{ours, entry("kube-controller-manager", "status")}, false},
		"an autoscaler scaled it":        {[]metav1.ManagedFieldsEntry{ours, entry("kubectl", "scale")}, false},
		"nothing is known of who did it": {nil, false},
	} {
		for _, generation := range []int64{0, 1} {
			object := &metav1.ObjectMeta{
				Generation: generation, ResourceVersion: "7", ManagedFields: tc.entries,
				Annotations: map[string]string{shipper.InstalledDigestAnnotation: "digest"},
			}
			if got := EditedByOthers(object); got != tc.want {
				t.Errorf("%s, generation %d: %v, want %v", name, generation, got, tc.want)
			}
			forget(object)
			if got := EditedByOthers(object); got != tc.want {
				t.Errorf("%s, generation %d, as caches have it: %v, want %v", name, generation, got, tc.want)
			}
		}
	}
}
