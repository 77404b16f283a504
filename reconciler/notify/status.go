// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// maxMessage bounds the message of the condition, in bytes.
const maxMessage = 1024

// status is the new status of a Notification.
func status(n *shipper.Notification, b *outbox, now time.Time) shipper.NotificationStatus {
	out := *n.Status.DeepCopy()
	out.ObservedGeneration = n.Generation
	out.ConsecutiveFailures = b.failures
	out.LastDeliveryTime = wholeSeconds(b.lastDelivery)
	out.DeliveredUpToTime = wholeSeconds(b.mark())
	if b.delivering != nil {
		out.Conditions = shipper.SetCondition(out.Conditions, *b.delivering, metav1.NewTime(now).Rfc3339Copy())
	}
	return out
}

// wholeSeconds is a time as objects store it; nil for the zero time.
func wholeSeconds(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return new(metav1.NewTime(t).Rfc3339Copy())
}

// check records that the receiver was checked; f is nil if it may be used. After a failure the next check is due like an attempt:
// nothing reports a Secret or a RoleBinding that is created later.
func (b *outbox) check(n *shipper.Notification, f *failure, now time.Time) {
	b.checked = n.Generation
	if f != nil {
		b.checkAt = now.Add(backoff(b.failedChecks))
		b.failedChecks++
		b.setNotDelivering(f)
		return
	}
	b.failedChecks, b.checkAt = 0, time.Time{}
	if !shipper.ConditionTrue(n.Status.Conditions, shipper.NotificationDelivering) {
		b.ready()
	}
}

// setNotDelivering makes Delivering False.
func (b *outbox) setNotDelivering(f *failure) {
	b.delivering = &shipper.Condition{
		Type: shipper.NotificationDelivering, Status: corev1.ConditionFalse, Reason: f.reason, Message: report.Shorten(f.message, maxMessage),
	}
}

// accepted makes Delivering True.
func (b *outbox) accepted() {
	b.delivering = &shipper.Condition{Type: shipper.NotificationDelivering, Status: corev1.ConditionTrue, Reason: shipper.Delivered}
}

// ready makes Delivering Unknown: the receiver may be used, and nothing was sent since it could not.
func (b *outbox) ready() {
	b.delivering = &shipper.Condition{Type: shipper.NotificationDelivering, Status: corev1.ConditionUnknown, Reason: shipper.NotDelivered}
}
