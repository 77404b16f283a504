// SPDX-License-Identifier: Apache-2.0

package rolloutblock

import (
	"errors"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// validate returns the errors of a block. Expressions that are unchanged were validated before.
func (w *Webhook) validate(b, old *shipper.RolloutBlock) field.ErrorList {
	spec, path := &b.Spec, field.NewPath("spec")
	var errs field.ErrorList
	if strings.TrimSpace(spec.Message) == "" {
		errs = append(errs, field.Required(path.Child("message"), "say why rollouts are blocked, and until when"))
	}
	if strings.TrimSpace(spec.Author.Name) == "" {
		errs = append(errs, field.Required(path.Child("author", "name"), "name the person or team to contact"))
	}
	if spec.TTL != nil && spec.TTL.Duration <= 0 {
		errs = append(errs, field.Invalid(path.Child("ttl"), spec.TTL.Duration.String(), "must be more than nothing"))
	}
	errs = append(errs, validateSchedule(path.Child("schedule"), spec.Schedule)...)
	if spec.Scope != nil && spec.Scope.Applications != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(spec.Scope.Applications,
			metav1validation.LabelSelectorValidationOptions{}, path.Child("scope", "applications"))...)
	}
	if old == nil || !equality.Semantic.DeepEqual(spec.MatchConditions, old.Spec.MatchConditions) {
		errs = append(errs, w.Conditions.Validate(path.Child("matchConditions"), spec.MatchConditions)...)
	}
	return errs
}

func validateSchedule(path *field.Path, s *shipper.RolloutBlockSchedule) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	if s.Start != nil && s.End != nil && !s.Start.Before(s.End) {
		errs = append(errs, field.Invalid(path.Child("end"), s.End.UTC().Format(time.RFC3339), "must be after start"))
	}
	for i, window := range s.Windows {
		at := path.Child("windows").Index(i)
		_, err := block.ParseWindow(window)
		switch {
		case err == nil:
		case errors.Is(err, block.ErrTimeZone):
			errs = append(errs, field.Invalid(at.Child("timeZone"), window.TimeZone, block.ErrTimeZone.Error()))
		case errors.Is(err, block.ErrDuration):
			errs = append(errs, field.Invalid(at.Child("duration"), window.Duration.Duration.String(), block.ErrDuration.Error()))
		default:
			errs = append(errs, field.Invalid(at.Child("cron"), window.Cron, err.Error()+
				`; write minute, hour, day of month, month and day of week, like "0 18 * * FRI"`))
		}
	}
	return errs
}
