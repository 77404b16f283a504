// SPDX-License-Identifier: Apache-2.0

// Package notification validates Notifications: their user may get the Secret that they name, their selector is one, and their body
// compiles. The URL is in the Secret, which is not read.
package notification

import (
	"context"
	"errors"
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
	"shipper.dev/shipper/webhook/bounds"
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
		if asksForTest(now, old) {
			return w.permitSecret(ctx, req, now)
		}
		return nil
	}
	if err := response.Invalidate(kind, now.Name, validate(now)); err != nil {
		return err
	}
	// Compiling a body takes memory: a user without a right to the Secret does not cause it.
	if err := w.permitSecret(ctx, req, now); err != nil {
		return err
	}
	return validateBody(ctx, now, old)
}

// asksForTest reports whether an update makes the reconciler send a test message, which it does with the Secret.
func asksForTest(now, old *shipper.Notification) bool {
	request := now.Annotations[shipper.NotificationTestAnnotation]
	return request != "" && request != old.Annotations[shipper.NotificationTestAnnotation]
}

// validate returns the errors of a Notification, without those of its body.
func validate(now *shipper.Notification) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	if now.Spec.To.SecretName == "" {
		errs = append(errs, field.Required(path.Child("to", "secretName"), "name the Secret with the URL that gets the messages"))
	}
	if selector := now.Spec.Applications; selector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{},
			path.Child("applications"))...)
	}
	return errs
}

// validateBody refuses a body that does not compile. A body that is unchanged was validated before.
func validateBody(ctx context.Context, now, old *shipper.Notification) error {
	text := now.Spec.Body
	if text == "" || (old != nil && old.Spec.Body == text) {
		return nil
	}
	err := bounds.Compile(ctx, now.Namespace, func() error { return body.Check(ctx, text) })
	switch {
	case errors.Is(err, body.ErrBusy):
		return response.Later(err.Error(), time.Second)
	case err != nil:
		return response.Invalidate(kind, now.Name, field.ErrorList{field.Invalid(field.NewPath("spec", "body"), text, err.Error())})
	default:
		return nil
	}
}

// permitSecret refuses a Secret that the user may not get, whatever field changes, and for a test message: otherwise the user could have
// its token sent to a server, or a text of their own sent with it.
func (w *Webhook) permitSecret(ctx context.Context, req *admission.Request, now *shipper.Notification) error {
	name := now.Spec.To.SecretName
	refused, err := authz.SecretRefused(ctx, w.Authz, req.UserInfo, types.NamespacedName{Namespace: now.Namespace, Name: name})
	switch {
	case err != nil:
		return response.Later(err.Error(), authz.RetryAfter)
	case refused != "":
		return response.Invalidate(kind, now.Name, field.ErrorList{field.Forbidden(field.NewPath("spec", "to", "secretName"), refused)})
	}
	return nil
}
