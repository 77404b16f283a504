// SPDX-License-Identifier: Apache-2.0

// Package notification validates Notifications: their user may get the Secret that they name, their selector is one, and their body
// compiles. The URL is in the Secret, which is not read.
package notification

import (
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/outward/body"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/response"
)

const kind = "Notification"

// Webhook validates Notifications.
type Webhook struct {
	Authz authz.Authorizer
}

// Validate validates an object before it is stored.
func (w *Webhook) Validate(ctx context.Context, req *admission.Request, _ *response.Response) error {
	if req.Operation == admissionv1.Delete {
		return nil
	}
	now, old, err := response.Decode[shipper.Notification](req)
	if err != nil {
		return err
	}
	if old != nil && equality.Semantic.DeepEqual(now.Spec, old.Spec) {
		return nil
	}
	if err := response.Invalidate(kind, now.Name, validate(now, old)); err != nil {
		return err
	}
	return w.permitSecret(ctx, req, now, old)
}

// validate returns the errors of a Notification. A body that is unchanged was validated before.
func validate(now, old *shipper.Notification) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	if now.Spec.To.SecretName == "" {
		errs = append(errs, field.Required(path.Child("to", "secretName"), "name the Secret with the URL that gets the messages"))
	}
	if selector := now.Spec.Applications; selector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{},
			path.Child("applications"))...)
	}
	if text := now.Spec.Body; text != "" && (old == nil || old.Spec.Body != text) {
		if err := body.Check(text); err != nil {
			errs = append(errs, field.Invalid(path.Child("body"), text, err.Error()))
		}
	}
	return errs
}

// permitSecret refuses a Secret that the user may not get: otherwise the user could have its token sent to a server. It checks again
// when the Secret changes.
func (w *Webhook) permitSecret(ctx context.Context, req *admission.Request, now, old *shipper.Notification) error {
	name := now.Spec.To.SecretName
	if old != nil && old.Spec.To.SecretName == name {
		return nil
	}
	secret := types.NamespacedName{Namespace: now.Namespace, Name: name}
	allowed, err := w.Authz.MayGet(ctx, req.UserInfo, "secrets", secret)
	if err != nil {
		return response.Later(err.Error(), time.Second)
	}
	if allowed {
		return nil
	}
	return response.Invalidate(kind, now.Name, field.ErrorList{field.Forbidden(field.NewPath("spec", "to", "secretName"), fmt.Sprintf(
		"user %q may not get secrets/%s in %s: the author must be allowed to get a Secret that the object names; ask who owns the "+
			"namespace for: kubectl create role %s -n %s --verb=get --resource=secrets --resource-name=%s, and a rolebinding to it",
		req.UserInfo.Username, name, now.Namespace, name, now.Namespace, name))})
}
