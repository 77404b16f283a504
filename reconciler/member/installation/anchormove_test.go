// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestOnlyAHooksObjectWithoutAnOwnerIsLost: a conflict has ended the pass that set it free.
func TestOnlyAHooksObjectWithoutAnOwnerIsLost(t *testing.T) {
	i := &installer{it: &shipper.InstallationTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}}}
	job := func(change func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{shipper.OwnedByLabel: "web-1"}, Annotations: map[string]string{shipper.HookRunAnnotation: "u/pre-install/1"},
		}}
		change(o)
		return o
	}
	for sentence, tc := range map[string]struct {
		change func(*metav1.PartialObjectMetadata)
		lost   bool
	}{
		"it has no owner":          {func(*metav1.PartialObjectMetadata) {}, true},
		"it has one":               {func(o *metav1.PartialObjectMetadata) { o.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} }, false},
		"it is of another Release": {func(o *metav1.PartialObjectMetadata) { o.Labels[shipper.OwnedByLabel] = "web-2" }, false},
		"no hook made it":          {func(o *metav1.PartialObjectMetadata) { o.Annotations = nil }, false},
		"its chart has it kept":    {func(o *metav1.PartialObjectMetadata) { o.Annotations["helm.sh/resource-policy"] = "keep" }, false},
	} {
		if got := i.lost(job(tc.change)); got != tc.lost {
			t.Errorf("%s: lost %t, want %t", sentence, got, tc.lost)
		}
	}
}
