// SPDX-License-Identifier: Apache-2.0

package rolloutblock

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func validate(spec *shipper.RolloutBlockSpec) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	if strings.TrimSpace(spec.Message) == "" {
		errs = append(errs, field.Required(path.Child("message"), "tell those who are refused why, and until when"))
	}
	if strings.TrimSpace(spec.Author.Name) == "" {
		errs = append(errs, field.Required(path.Child("author", "name"), "name whom to ask"))
	}
	return errs
}
