// SPDX-License-Identifier: Apache-2.0

package templatecheck

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const (
	// MaxChecks bounds the checks of a step, and those of a strategy besides.
	MaxChecks = 10
	// MaxCheckArguments bounds the arguments of a check.
	MaxCheckArguments = 20
)

// validateChecks returns the errors of the checks of a strategy, independent of the Checks that exist.
func validateChecks(s *shipper.RolloutStrategy, path *field.Path) field.ErrorList {
	errs := validateStepChecks(s.Checks, nil, path.Child("checks"))
	for i, step := range s.Steps {
		errs = append(errs, validateStepChecks(step.Checks, s.Checks, path.Child("steps").Index(i).Child("checks"))...)
	}
	return errs
}

// validateStepChecks validates checks beside others, whose names they may not have: statuses list them by name.
func validateStepChecks(checks, others []shipper.StepCheck, path *field.Path) field.ErrorList {
	if len(checks) > MaxChecks {
		return field.ErrorList{field.TooMany(path, len(checks), MaxChecks)}
	}
	var errs field.ErrorList
	for i, c := range checks {
		at := path.Index(i)
		if c.Check == "" {
			errs = append(errs, field.Required(at.Child("check"), "name a Check"))
			continue
		}
		if c.Name != "" {
			if wrong := validation.IsDNS1123Subdomain(c.Name); len(wrong) > 0 || len(c.Name) > validation.DNS1123LabelMaxLength {
				errs = append(errs, field.Invalid(at.Child("name"), c.Name,
					strings.Join(append(wrong, "must be no more than 63 bytes"), "; ")))
			}
		}
		if n := len(c.NameInStep()); c.Name == "" && n > validation.DNS1123LabelMaxLength {
			errs = append(errs, field.Required(at.Child("name"),
				fmt.Sprintf("give name: the name of the Check has %d characters, and at most 63 are shown", n)))
		}
		if len(c.Args) > MaxCheckArguments {
			errs = append(errs, field.TooMany(at.Child("args"), len(c.Args), MaxCheckArguments))
		}
		same := func(other shipper.StepCheck) bool { return other.NameInStep() == c.NameInStep() }
		if slices.ContainsFunc(checks[:i], same) || slices.ContainsFunc(others, same) {
			errs = append(errs, field.Invalid(at.Child("name"), c.NameInStep(),
				"another check of the step, or of the strategy, has this name: give this one a name of its own"))
		}
	}
	return errs
}
