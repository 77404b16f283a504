// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/rights"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/response"
)

var secretPath = chartPath.Child("credentials", "secretName")

// permitCredentials refuses credentials that the user may not read: otherwise the user could fetch other users' charts, or have
// the credentials sent to another server. It checks again when their chart changes.
func (w *Webhook) permitCredentials(ctx context.Context, req *admission.Request, app, old *shipper.Application) error {
	chart := app.Spec.Template.Chart
	if chart.Credentials.SecretName == "" {
		return nil
	}
	if old != nil {
		before := old.Spec.Template.Chart
		if before.Credentials == chart.Credentials && before.RepoURL == chart.RepoURL && before.Name == chart.Name {
			return nil
		}
	}
	if _, before := w.released(app, chart); before || w.restored(app, old) {
		return nil
	}
	return w.permitSecret(ctx, req, app, secretPath, chart.Credentials.SecretName,
		"a chart is fetched only with credentials that its requester may read")
}

// permitSecret refuses a Secret of the namespace that the user may not get.
func (w *Webhook) permitSecret(
	ctx context.Context, req *admission.Request, app *shipper.Application, path *field.Path, name, since string,
) error {
	secret := types.NamespacedName{Namespace: app.Namespace, Name: name}
	allowed, err := w.Guard.Authz.May(ctx, req.UserInfo, authz.Get("secrets", secret))
	if err != nil {
		return response.Later(err.Error(), authz.RetryAfter)
	}
	if allowed {
		return nil
	}
	return response.Invalidate(kind, app.Name, field.ErrorList{field.Forbidden(path, fmt.Sprintf(
		"%s may not get Secret %s, and %s; %s", req.UserInfo.Username, secret, since,
		rights.Remedy(authz.Get("secrets", secret), req.UserInfo.Username)))})
}
