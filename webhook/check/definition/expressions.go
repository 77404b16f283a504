// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/outward/expression"
	"shipper.dev/shipper/webhook/bounds"
	"shipper.dev/shipper/webhook/response"
)

// Expressions returns the errors of pass and fail, which compile compiles. The other error is temporary.
func Expressions(
	ctx context.Context, spec *shipper.CheckSpec, namespace string, compile func(text string) error,
) (field.ErrorList, error) {
	var errs field.ErrorList
	for _, one := range []struct{ name, text string }{{"pass", spec.Pass}, {"fail", spec.Fail}} {
		if one.text == "" {
			continue
		}
		err := bounds.Compile(ctx, namespace, func() error { return compile(one.text) })
		switch {
		case errors.Is(err, expression.ErrBusy):
			return nil, response.Later(err.Error(), time.Second)
		case err != nil:
			errs = append(errs, field.Invalid(specPath.Child(one.name), one.text, err.Error()))
		}
	}
	return errs, nil
}
