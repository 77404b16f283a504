// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestADefinitionIsDeletedWhenThatIsConfirmed deletes a definition of Shipper in dry runs, as cluster-admin.
func TestADefinitionIsDeletedWhenThatIsConfirmed(t *testing.T) {
	crd := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: shipper.Resource("rolloutblocks").String()}}
	crd.APIVersion, crd.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	confirm := func(value string) {
		patch := `{"metadata":{"annotations":{"` + shipper.ConfirmDeletionAnnotation + `":` + value + `}}}`
		if err := admin.Patch(t.Context(), crd.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	defer confirm("null")
	for _, value := range []string{"null", `"applications.shipper.booking.com"`} {
		confirm(value)
		err := admin.Delete(t.Context(), crd.DeepCopy(), client.DryRunAll)
		way := "kubectl annotate crd " + crd.Name + " " + shipper.ConfirmDeletionAnnotation + "=" + crd.Name
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), way) {
			t.Errorf("with the annotation %s: %v", value, err)
		}
	}
	confirm(`"` + crd.Name + `"`)
	if err := admin.Delete(t.Context(), crd.DeepCopy(), client.DryRunAll); err != nil {
		t.Errorf("when it is confirmed: %v", err)
	}
}
