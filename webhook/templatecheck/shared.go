// SPDX-License-Identifier: Apache-2.0

package templatecheck

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// MaxStrategyBytes bounds a Strategy as JSON: each Release that takes it has a copy.
const MaxStrategyBytes = 64 << 10

// ValidateShared returns the errors of the spec of a Strategy, which is at path: with steps it is for charts, without for resources.
func ValidateShared(s *shipper.RolloutStrategy, path *field.Path) field.ErrorList {
	if s.From != nil {
		return field.ErrorList{field.Forbidden(path.Child("from"), "a Strategy takes nothing from another one")}
	}
	if text, err := json.Marshal(s); err != nil || len(text) > MaxStrategyBytes {
		return field.ErrorList{field.TooLong(path, "", MaxStrategyBytes)}
	}
	if len(s.Steps) == 0 {
		return validateRollout(s, path)
	}
	return validateCharts(s, path)
}

// ValidateTaken returns the errors of what a template takes from a Strategy: a chart needs steps, and resources have none.
func ValidateTaken(env *shipper.ReleaseEnvironment, taken *shipper.RolloutStrategy) field.ErrorList {
	path := field.NewPath("spec")
	content := *taken
	content.From = nil
	if env.Resources == nil && len(content.Steps) == 0 {
		return field.ErrorList{field.Required(path.Child("steps"), "a chart needs steps, and this Strategy is for resources")}
	}
	if env.Resources != nil {
		return validateRollout(&content, path)
	}
	return validateCharts(&content, path)
}

// validateCharts validates a strategy with steps.
func validateCharts(s *shipper.RolloutStrategy, path *field.Path) field.ErrorList {
	return append(validateNoRolling(s, path), validateStrategy(s, path)...)
}

// ValidateRecord returns the errors of the strategy of a Release that has taken it from a Strategy: a Release says what was taken.
func ValidateRecord(env *shipper.ReleaseEnvironment, path *field.Path) field.ErrorList {
	from := stamp.From(env)
	if from == nil {
		return nil
	}
	if env.Resources == nil && len(env.Strategy.Steps) == 0 {
		return field.ErrorList{field.Required(path.Child("steps"), "a chart needs steps")}
	}
	at := path.Child("from", "digest")
	digest, err := stamp.StrategyDigest(*env.Strategy)
	switch {
	case err != nil:
		return field.ErrorList{field.InternalError(at, err)}
	case digest != from.Digest:
		return field.ErrorList{field.Invalid(at, from.Digest, fmt.Sprintf("must be the sha256 of the other fields of strategy: %s", digest))}
	}
	return nil
}

// isReference reports whether a strategy is taken from a Strategy and not known here.
func isReference(s *shipper.RolloutStrategy) bool { return s.From != nil && !stamp.HasContent(s) }
