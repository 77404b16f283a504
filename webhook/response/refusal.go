// SPDX-License-Identifier: Apache-2.0

package response

import (
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/printable"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Decision is the result of a request, as metrics and audit logs name it.
type Decision string

// The decisions.
const (
	// Allowed means that the request may continue.
	Allowed Decision = "allowed"
	// Invalid means that the object breaks a rule; the user can correct it. 422; 400 for a request without an object.
	Invalid Decision = "invalid"
	// Blocked means that a RolloutBlock is in effect. 403.
	Blocked Decision = "blocked"
	// Forbidden means that this user may not do this. 403.
	Forbidden Decision = "forbidden"
	// Unavailable means that the request cannot be judged now; a retry may help. 503.
	Unavailable Decision = "unavailable"
	// Failed means that the webhook itself failed. 500.
	Failed Decision = "failed"
)

// Refusal is the refusal of a request: the status for the user, and the decision for metrics.
type Refusal struct {
	Decision Decision
	Status   metav1.Status
}

// Error is the message for the user.
func (r *Refusal) Error() string { return r.Status.Message }

// Invalidate refuses the object of kind and name with one cause per field. It is nil when errs is empty.
func Invalidate(kind, name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	invalid := apierrors.NewInvalid(shipper.GroupVersion.WithKind(kind).GroupKind(), name, errs)
	status := invalid.ErrStatus
	status.Message = printable.OneLine(status.Message)
	for i := range status.Details.Causes {
		status.Details.Causes[i].Message = printable.OneLine(status.Details.Causes[i].Message)
	}
	return &Refusal{Decision: Invalid, Status: status}
}

// malformed refuses a request that no API server sends.
func malformed(why string) error {
	return &Refusal{Decision: Invalid, Status: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: why,
	}}
}

// Forbid refuses because this user may not do this to the object of resource (a plural) and name.
func Forbid(resource, name, why string) error {
	return &Refusal{Decision: Forbidden, Status: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: printable.OneLine(why),
		Details: &metav1.StatusDetails{Group: shipper.GroupName, Kind: resource, Name: name},
	}}
}

// Later refuses temporarily. Clients that honour Retry-After, kubectl among them, silently retry after that time, up to ten
// times. Use it for problems that end within a moment.
func Later(why string, retryAfter time.Duration) error {
	seconds := max(retryAfter.Round(time.Second), time.Second) / time.Second
	return unavailable(why, &metav1.StatusDetails{RetryAfterSeconds: int32(seconds)})
}

// Unable refuses temporarily without a retry hint, for problems that may last: the user sees the message at once and decides
// when to retry.
func Unable(why string) error { return unavailable(why, nil) }

func unavailable(why string, details *metav1.StatusDetails) error {
	return &Refusal{Decision: Unavailable, Status: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable,
		Message: printable.OneLine(why), Details: details,
	}}
}

// refusalOf finds the refusal in err. Any other error is a failure of the webhook.
func refusalOf(err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	return &Refusal{Decision: Failed, Status: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError,
		Message: "the webhook failed: " + printable.OneLine(err.Error()),
	}}
}
