// SPDX-License-Identifier: Apache-2.0

package templatecheck

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// MaxWaves bounds a strategy.
const MaxWaves = 100

// validateWaves validates the waves of a strategy. Those of resources have no steps.
func validateWaves(s *shipper.RolloutStrategy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch s.Advance {
	case "":
	case shipper.AdvanceManual, shipper.AdvanceAutomatic:
		if len(s.Waves) == 0 {
			why := "only with waves"
			if len(s.Steps) > 0 {
				why += ": after says when a step goes on by itself"
			}
			errs = append(errs, field.Forbidden(path.Child("advance"), why))
		}
	default:
		errs = append(errs, field.NotSupported(path.Child("advance"), s.Advance,
			[]shipper.AdvancePolicy{shipper.AdvanceManual, shipper.AdvanceAutomatic}))
	}
	waves := path.Child("waves")
	if len(s.Waves) > MaxWaves {
		return append(errs, field.TooMany(waves, len(s.Waves), MaxWaves))
	}
	names, rest := map[string]bool{}, -1
	for i, wave := range s.Waves {
		at := waves.Index(i)
		if wrong := validation.IsDNS1123Label(wave.Name); len(wrong) > 0 {
			errs = append(errs, field.Invalid(at.Child("name"), wave.Name, strings.Join(wrong, "; ")))
		}
		if names[wave.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), wave.Name))
		}
		names[wave.Name] = true
		if wave.ClusterSelector != nil {
			errs = append(errs, placement.ValidateSelector(wave.ClusterSelector, at.Child("clusterSelector"))...)
		} else if rest >= 0 {
			errs = append(errs, field.Invalid(at.Child("clusterSelector"), "", fmt.Sprintf("waves[%d] (%s) has all the rest already: say which "+
				"clusters this wave has", rest, s.Waves[rest].Name)))
		} else {
			rest = i
		}
		bound := at.Child("maxConcurrency")
		if wrong := validateBound(wave.MaxConcurrency, bound); len(wrong) > 0 {
			errs = append(errs, wrong...)
		} else if isZero(wave.MaxConcurrency) {
			errs = append(errs, field.Invalid(bound, wave.MaxConcurrency.String(), "then no cluster could ever change: at least 1"))
		}
		errs = append(errs, validateAfterTasks(s, i, at.Child("afterTasks"))...)
		errs = append(errs, validateBeforeTasks(wave.BeforeTasks, at.Child("beforeTasks"))...)
	}
	return append(errs, validateMaxFailures(s, path)...)
}

// maxApprovals bounds the users that a wave asks for.
const maxApprovals = 10

// validateAfterTasks validates what a wave waits for at its end.
func validateAfterTasks(s *shipper.RolloutStrategy, wave int, path *field.Path) field.ErrorList {
	tasks := s.Waves[wave].AfterTasks
	switch {
	case tasks == nil:
		return nil
	case wave == len(s.Waves)-1:
		return field.ErrorList{field.Forbidden(path, "not on the last wave: no wave follows that could wait")}
	case tasks.Approvals == 0 && len(tasks.Conditions) == 0 && tasks.Wait == "" && len(tasks.Checks) == 0:
		return field.ErrorList{field.Required(path, "name approvals, conditions, a wait or checks: without them there is nothing to wait for")}
	}
	errs := validateStepChecks(tasks.Checks, s.ChecksAt(s.LastStep()), path.Child("checks"))
	return append(errs, validateTasks(tasks, path)...)
}

// validateBeforeTasks validates what a wave waits for before it begins.
func validateBeforeTasks(tasks *shipper.WaveTasks, path *field.Path) field.ErrorList {
	switch {
	case tasks == nil:
		return nil
	case len(tasks.Checks) > 0:
		return field.ErrorList{field.Forbidden(path.Child("checks"), "not before a wave: nothing of the Release runs in its clusters that a "+
			"check could measure; use afterTasks of the wave before")}
	case tasks.Approvals == 0 && len(tasks.Conditions) == 0 && tasks.Wait == "":
		return field.ErrorList{field.Required(path, "name approvals, conditions or a wait: without them there is nothing to wait for")}
	}
	return validateTasks(tasks, path)
}

// validateTasks validates the tasks that a wave may have before and after it.
func validateTasks(tasks *shipper.WaveTasks, path *field.Path) field.ErrorList {
	errs := validateGates(tasks.Conditions, path.Child("conditions"))
	errs = append(errs, validateDuration(tasks.Wait, path.Child("wait"), time.Second)...)
	if tasks.Approvals < 0 || tasks.Approvals > maxApprovals {
		errs = append(errs, field.Invalid(path.Child("approvals"), tasks.Approvals, fmt.Sprintf("must be from 1 to %d", maxApprovals)))
	}
	return errs
}
