// SPDX-License-Identifier: Apache-2.0

package templatecheck

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// MaxRollingClusters bounds the clusters that change at the same time.
const MaxRollingClusters = 1000

// validateRollout validates the strategy of resources.
func validateRollout(s *shipper.RolloutStrategy, path *field.Path) field.ErrorList {
	if s == nil {
		return field.ErrorList{field.Required(path, "is filled in by Shipper's mutating webhook: write strategy: {}")}
	}
	if isReference(s) {
		return nil
	}
	var errs field.ErrorList
	forbid := func(given bool, child, why string) {
		if given {
			errs = append(errs, field.Forbidden(path.Child(child), why))
		}
	}
	if len(s.Steps) > 0 {
		return append(errs, field.Forbidden(path.Child("steps"), "resources have no capacity and traffic to step through: "+
			"rolling says how many clusters change at the same time"))
	}
	forbid(len(s.Checks) > 0, "checks", "resources have no steps to check: afterTasks of a wave have checks")
	forbid(s.PreviewWhenIdle != "", "previewWhenIdle", "resources have no preview Service")
	forbid(s.FirstRelease != "", "firstRelease", "resources have no steps to begin with")
	switch s.OnFailure {
	case "", shipper.OnFailureHold, shipper.OnFailureAbort:
	case shipper.OnFailureRetreat:
		if len(s.Waves) == 0 {
			errs = append(errs, field.Invalid(path.Child("onFailure"), s.OnFailure, "resources have no step to go back to: use Abort"))
		}
	default:
		errs = append(errs, field.NotSupported(path.Child("onFailure"), s.OnFailure,
			[]shipper.FailurePolicy{shipper.OnFailureHold, shipper.OnFailureRetreat, shipper.OnFailureAbort}))
	}
	errs = append(errs, validateWaves(s, path)...)
	for i := range s.Waves {
		if s.Waves[i].BeforeTasks != nil {
			errs = append(errs, field.Forbidden(path.Child("waves").Index(i).Child("beforeTasks"),
				"not for resources: use afterTasks of the wave before"))
		}
	}
	if len(s.Waves) > 0 && s.Rolling != nil && s.Rolling.MaxUnavailable != nil {
		errs = append(errs, field.Forbidden(path.Child("rolling", "maxUnavailable"),
			"not with waves: maxConcurrency of each wave bounds how many of its clusters change at the same time"))
	}
	errs = append(errs, validateDuration(s.ProgressDeadline, path.Child("progressDeadline"), MinProgressDeadline)...)
	errs = append(errs, validateDuration(s.UnavailablePeriod, path.Child("unavailablePeriod"), 0)...)
	return append(errs, validateRolling(s.Rolling, path.Child("rolling"))...)
}

func validateRolling(r *shipper.RollingClusters, path *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	at := path.Child("maxUnavailable")
	errs := validateBound(r.MaxUnavailable, at)
	if len(errs) == 0 && isZero(r.MaxUnavailable) {
		errs = append(errs, field.Invalid(at, r.MaxUnavailable.String(), "objects are changed in place: at least 1"))
	}
	return append(errs, validateBound(r.MaxSurge, path.Child("maxSurge"))...)
}

// percentForm is the format of percentages.
var percentForm = regexp.MustCompile(`^[0-9]{1,3}%$`)

// percentOf is the number of a percentage.
func percentOf(text string) (int, bool) {
	n, err := strconv.Atoi(strings.TrimSuffix(text, "%"))
	return n, err == nil && percentForm.MatchString(text)
}

// validateBound validates a number of clusters, or a percentage of them.
func validateBound(n *intstr.IntOrString, path *field.Path) field.ErrorList {
	if n == nil {
		return nil
	}
	if n.Type == intstr.Int {
		if n.IntVal < 0 || n.IntVal > MaxRollingClusters {
			return field.ErrorList{field.Invalid(path, n.IntVal, fmt.Sprintf("a number of clusters is from 0 to %d", MaxRollingClusters))}
		}
		return nil
	}
	if percent, ok := percentOf(n.StrVal); !ok || percent > MaxPercent {
		return field.ErrorList{field.Invalid(path, n.StrVal, "write a number of clusters such as 1, or a percentage of them from 0% to 100%")}
	}
	return nil
}

// isZero reports whether a bound is given as 0; an absent one is not.
func isZero(n *intstr.IntOrString) bool {
	if n == nil {
		return false
	}
	percent, _ := percentOf(n.StrVal)
	return n.Type == intstr.Int && n.IntVal == 0 || n.Type == intstr.String && percent == 0
}
