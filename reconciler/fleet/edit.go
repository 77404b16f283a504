// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// EditOf differs after each write of the object itself, not of a subresource: a write of status or scale
// it is no edit. It is the same for an object as caches have it, as their events have it and as the API server returns it.
func EditOf(object metav1.Object) string {
	if kept, ok := keptEdit(object); ok {
		return kept
	}
	edit := editOf(object)
	if byOthers(object) {
		edit += othersMark
	}
	return edit
}

// othersMark ends the edit of an object that others than Shipper have written.
const othersMark = "+"

// EditedByOthers reports whether anybody but Shipper has set a field of an object, in its own right and not by a subresource. Fields
// that were taken away leave no trace.
func EditedByOthers(object metav1.Object) bool { return strings.HasSuffix(EditOf(object), othersMark) }

func byOthers(object metav1.Object) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.Subresource == "" && m.Manager != shipper.FieldOwner
	})
}

// keptEdit is what forget has left of managedFields.
func keptEdit(object metav1.Object) (string, bool) {
	if managed := object.GetManagedFields(); len(managed) == 1 && managed[0].FieldsV1 == nil && managed[0].Operation == "" {
		return managed[0].Manager, true
	}
	return "", false
}

func editOf(object metav1.Object) string {
	if object.GetGeneration() == 0 { // its kind has no status that would be written all the time
		return object.GetResourceVersion()
	}
	var text strings.Builder
	fmt.Fprintln(&text, object.GetGeneration())
	for _, m := range object.GetManagedFields() {
		if m.Subresource == "" {
			fmt.Fprintln(&text, m.Manager, m.Operation, when(m), held(m))
		}
	}
	sum := sha256.Sum256([]byte(text.String()))
	return hex.EncodeToString(sum[:12])
}

// when is the time of an entry. A writer that sets managedFields by hand may leave it out.
func when(m metav1.ManagedFieldsEntry) string {
	if m.Time == nil {
		return ""
	}
	return m.Time.UTC().Format(time.RFC3339)
}

// held are the fields that Shipper set of an object, of its own entries. Who takes away what Shipper set leaves no other trace,
// where a kind's generation does not count metadata: a writer that removes fields is not recorded.
func held(m metav1.ManagedFieldsEntry) string {
	var fields any
	if m.Manager != shipper.FieldOwner || m.FieldsV1 == nil || json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil {
		return ""
	}
	raw, err := json.Marshal(fields) // in one order, which that of the API server is not everywhere
	if err != nil {
		return ""
	}
	return string(raw)
}

// forget leaves nothing of managedFields, which are large, but for objects that charts brought: of these, what EditOf says.
func forget(object metav1.Object) {
	if object.GetAnnotations()[shipper.InstalledDigestAnnotation] == "" {
		object.SetManagedFields(nil)
		return
	}
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: EditOf(object)}})
}

// Edited reports whether an event is that of an object that was written.
func (e Event) Edited() bool { return e.Old != nil && e.New != nil && EditOf(e.Old) != EditOf(e.New) }
