// SPDX-License-Identifier: Apache-2.0

package templatecheck

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// validateMaxFailures validates how many clusters may fail, of all waves and of each.
func validateMaxFailures(s *shipper.RolloutStrategy, path *field.Path) field.ErrorList {
	const name = "maxFailures"
	if s.MaxFailures != nil && len(s.Waves) == 0 {
		why := "only with waves: without them all clusters take each step together"
		if len(s.Steps) == 0 {
			why = "only with waves: without them one object that does not become ready fails the rollout"
		}
		return field.ErrorList{field.Forbidden(path.Child(name), why)}
	}
	errs := validateFailures(s.MaxFailures, path.Child(name))
	counts := s.MaxFailures != nil && !isZero(s.MaxFailures)
	for i, wave := range s.Waves {
		errs = append(errs, validateFailures(wave.MaxFailures, path.Child("waves").Index(i).Child(name))...)
		counts = counts || wave.MaxFailures != nil && !isZero(wave.MaxFailures)
	}
	if counts && s.ProgressDeadline == "" {
		errs = append(errs, field.Required(path.Child("progressDeadline"), "maxFailures counts the clusters that miss it: "+
			"write progressDeadline: 10m, or leave maxFailures out"))
	}
	return errs
}

// validateFailures validates a number of clusters, or a percentage of them.
func validateFailures(n *intstr.IntOrString, path *field.Path) field.ErrorList {
	if n != nil && n.Type == intstr.Int && (n.IntVal < 0 || n.IntVal > waves.MaxFailures) {
		text := fmt.Sprintf("a number of clusters that may fail is from 0 to %d", waves.MaxFailures)
		return field.ErrorList{field.Invalid(path, n.IntVal, text)}
	}
	return validateBound(n, path)
}
