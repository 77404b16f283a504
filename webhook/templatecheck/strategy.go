// SPDX-License-Identifier: Apache-2.0

package templatecheck

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func validateStrategy(s *shipper.RolloutStrategy, path *field.Path) field.ErrorList {
	if s == nil {
		return field.ErrorList{field.Required(path, "say in which steps a new release takes over")}
	}
	if isReference(s) {
		return nil
	}
	steps := path.Child("steps")
	switch {
	case len(s.Steps) == 0:
		return field.ErrorList{field.Required(steps, "a strategy has at least one step")}
	case len(s.Steps) > MaxSteps:
		return field.ErrorList{field.TooMany(steps, len(s.Steps), MaxSteps)}
	}
	var errs field.ErrorList
	for i, step := range s.Steps {
		capacity, traffic := steps.Index(i).Child("capacity"), steps.Index(i).Child("traffic")
		errs = append(errs, validatePercent(step.Capacity.Incumbent, capacity.Child("incumbent"))...)
		errs = append(errs, validatePercent(step.Capacity.Contender, capacity.Child("contender"))...)
		errs = append(errs, validateWeight(step.Traffic.Incumbent, traffic.Child("incumbent"))...)
		errs = append(errs, validateWeight(step.Traffic.Contender, traffic.Child("contender"))...)
		errs = append(errs, validateGates(step.ReadinessGates, steps.Index(i).Child("readinessGates"))...)
		errs = append(errs, validateAfter(s, i, steps.Index(i))...)
	}
	errs = append(errs, validateChecks(s, path)...)
	errs = append(errs, validateWaves(s, path)...)
	return append(errs, validateFailure(s, path)...)
}

// validateAfter validates how a step ends.
func validateAfter(s *shipper.RolloutStrategy, i int, path *field.Path) field.ErrorList {
	step := s.Steps[i]
	errs := validateDuration(step.After, path.Child("after"), 0)
	if i < len(s.Steps)-1 {
		return errs
	}
	if step.After != "" {
		errs = append(errs, field.Forbidden(path.Child("after"), "no step follows the last one: leave after out"))
	}
	if step.Gate != nil {
		errs = append(errs, field.Forbidden(path.Child("gate"), "no step follows the last one: leave gate out"))
	}
	return errs
}

// validateFailure validates when a rollout fails, and what is done then.
func validateFailure(s *shipper.RolloutStrategy, path *field.Path) field.ErrorList {
	errs := validateDuration(s.ProgressDeadline, path.Child("progressDeadline"), MinProgressDeadline)
	at := path.Child("onFailure")
	switch s.OnFailure {
	case "", shipper.OnFailureHold, shipper.OnFailureAbort:
	case shipper.OnFailureRetreat:
		if s.Steps[0].Traffic.Contender > 0 {
			errs = append(errs, field.Invalid(at, s.OnFailure, fmt.Sprintf("needs a step before step 0 (%s) in which the contender has no "+
				"traffic, such as {capacity: {contender: 1, incumbent: 100}, traffic: {contender: 0, incumbent: 100}}", s.Steps[0].Name)))
		}
	default:
		errs = append(errs, field.NotSupported(at, s.OnFailure,
			[]shipper.FailurePolicy{shipper.OnFailureHold, shipper.OnFailureRetreat, shipper.OnFailureAbort}))
	}
	switch s.PreviewWhenIdle {
	case "", shipper.PreviewWhenIdleActive, shipper.PreviewWhenIdleNone:
	default:
		errs = append(errs, field.NotSupported(path.Child("previewWhenIdle"), s.PreviewWhenIdle,
			[]shipper.PreviewWhenIdle{shipper.PreviewWhenIdleActive, shipper.PreviewWhenIdleNone}))
	}
	switch s.FirstRelease {
	case "", shipper.FirstReleaseSteps, shipper.FirstReleaseImmediate:
	default:
		errs = append(errs, field.NotSupported(path.Child("firstRelease"), s.FirstRelease,
			[]shipper.FirstRelease{shipper.FirstReleaseSteps, shipper.FirstReleaseImmediate}))
	}
	return errs
}

// validateDuration validates a duration that may be absent, as the schema does.
func validateDuration(d shipper.Duration, path *field.Path, least time.Duration) field.ErrorList {
	if d == "" {
		return nil
	}
	switch value, err := time.ParseDuration(string(d)); {
	case err != nil || !durationForm.MatchString(string(d)):
		return field.ErrorList{field.Invalid(path, d, "must be a duration in h, m and s, such as 10m or 1h30m")}
	case value > MaxDuration:
		return field.ErrorList{field.Invalid(path, d, "must be at most 720h")}
	case value < least:
		return field.ErrorList{field.Invalid(path, d, fmt.Sprintf("must be at least %s", least))}
	}
	return nil
}

// durationForm is the format of durations in the Gateway API (GEP-2257).
var durationForm = regexp.MustCompile(`^([0-9]{1,5}(h|m|s)){1,4}$`)

// validateGates validates types of conditions of other controllers: they have a domain, unlike Shipper's own.
func validateGates(gates []string, path *field.Path) field.ErrorList {
	if len(gates) > MaxGates {
		return field.ErrorList{field.TooMany(path, len(gates), MaxGates)}
	}
	var errs field.ErrorList
	for i, gate := range gates {
		domain, _, prefixed := strings.Cut(gate, "/")
		switch wrong := validation.IsQualifiedName(gate); {
		case len(wrong) > 0:
			errs = append(errs, field.Invalid(path.Index(i), gate, strings.Join(wrong, "; ")))
		case !prefixed:
			errs = append(errs, field.Invalid(path.Index(i), gate,
				"must be a type of condition that another controller owns, with its domain: example.com/Verified"))
		case domain == shipper.GroupVersion.Group:
			errs = append(errs, field.Invalid(path.Index(i), gate,
				"the domain "+domain+" is Shipper's own: a gate is a condition that another controller owns"))
		case slices.Contains(gates[:i], gate):
			errs = append(errs, field.Duplicate(path.Index(i), gate))
		}
	}
	return errs
}

func validatePercent(percent int32, path *field.Path) field.ErrorList {
	if percent < 0 || percent > MaxPercent {
		return field.ErrorList{field.Invalid(path, percent, "capacity is a percentage: use a number from 0 to 100")}
	}
	return nil
}

func validateWeight(weight int32, path *field.Path) field.ErrorList {
	if weight < 0 {
		return field.ErrorList{field.Invalid(path, weight, "traffic is a weight: use a number from 0 on")}
	}
	return nil
}
