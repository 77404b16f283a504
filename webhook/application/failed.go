// SPDX-License-Identifier: Apache-2.0

package application

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// validateFailed refuses the template that failed and was aborted, unless the user wants it to be tried again: a program that applies
// the same manifest for ever would roll it out for ever.
func (w *Webhook) validateFailed(app, old *shipper.Application, now time.Time) (field.ErrorList, error) {
	f := stamp.Failed(app)
	retry := app.Annotations[shipper.AppFailedRetryAnnotation]
	if old == nil || f == nil || retry != "" && retry != old.Annotations[shipper.AppFailedRetryAnnotation] ||
		stamp.SameEnvironment(&app.Spec.Template, &old.Spec.Template) {
		return nil, nil
	}
	template, err := w.template(app)
	if err != nil || !stamp.FailedBefore(f, template) {
		return nil, err
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "template"), fmt.Sprintf(
		"this failed (%s) at %s, %s ago, as Release %s, and was aborted: change it, or set the annotation %s to a new value",
		f.Reason, stamp.FailedAt(f), duration.HumanDuration(now.Sub(f.Time.Time)), f.Release, shipper.AppFailedRetryAnnotation))}, nil
}
