// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/duplicates"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/webhook/response"
)

// JudgeDuplicates refuses manifests of an Envelope in which two elements of a list have one key and differ in a way that Kubernetes does
// not accept, and warns of those that are placed with one of the two. A manifest that old has is refused by the clusters alone.
func JudgeDuplicates(now, old *shipper.Envelope) (warnings []string, err error) {
	manifests := manifestsOf(now)
	_, found := duplicates.Remove(manifests)
	var errs field.ErrorList
	for _, f := range found {
		at, key := manifestsPath.Index(f.Object), objects.KeyOf(&manifests[f.Object]).String()
		if f.Refused && !wasThere(old, now.Spec.Manifests[f.Object]) {
			errs = append(errs, field.Invalid(at, key, f.Text))
		} else {
			warnings = append(warnings, fmt.Sprintf("%s: %s: %s", at, key, f.Text))
		}
	}
	return warnings, response.Invalidate("Envelope", now.Name, errs)
}
