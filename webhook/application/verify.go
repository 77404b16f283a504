// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/webhook/response"
)

var (
	keysPath       = chartPath.Child("verify", "secretName")
	provenancePath = chartPath.Child("provenance")
)

// permitKeys refuses keys that the user may not read, and a chart that cannot be verified with them. It checks when the chart
// changes, but not for one that a Release has verified: a rollback to that needs no keys.
func (w *Webhook) permitKeys(
	ctx context.Context, req *admission.Request, a *response.Response, app, old *shipper.Application,
) error {
	want := app.Spec.Template.Chart
	if want.Verify.SecretName == "" || old != nil && old.Spec.Template.Chart.Same(want) || w.verified(app) || w.restored(app, old) {
		return nil
	}
	if err := w.permitSecret(ctx, req, app, keysPath, want.Verify.SecretName,
		"a chart is verified only with keys that its requester may read"); err != nil {
		return err
	}
	err := w.Charts.Verifiable(ctx, app.Namespace, want, app.Annotations[shipper.AppChartDigestAnnotation])
	switch {
	case err == nil:
		return nil
	case errors.Is(err, chart.ErrKeys):
		return response.Invalidate(kind, app.Name, field.ErrorList{field.Invalid(keysPath, want.Verify.SecretName, err.Error())})
	case errors.Is(err, chart.ErrProvenance):
		return response.Invalidate(kind, app.Name, field.ErrorList{
			field.Invalid(provenancePath, fmt.Sprintf("(%d bytes)", len(want.Provenance)), err.Error()),
		})
	}
	a.Warn("it is not known yet whether %s can be verified: %v", describe(want), err)
	return nil
}

// verified reports whether a Release of this Application has the same chart with a valid signature.
func (w *Webhook) verified(app *shipper.Application) bool {
	releases, err := w.State.Releases(key(app))
	return err == nil && slices.ContainsFunc(releases, func(rel *shipper.Release) bool {
		return rel.Spec.Environment.Chart.Same(app.Spec.Template.Chart) && rel.Signature() != nil
	})
}
