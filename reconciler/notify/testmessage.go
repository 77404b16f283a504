// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"fmt"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// testWord is that of the message by which a user tests a Notification. No Notification can list it.
const testWord shipper.NotificationEvent = "Test"

// maxRequest bounds, in bytes, how much of the annotation is kept.
const maxRequest = 64

// test sends the message that a user requests by the annotation: once, also while other messages wait for another attempt. It returns
// the last result; nil if none was ever requested.
func (r *Reconciler) test(ctx context.Context, n *shipper.Notification, b *outbox) (*shipper.NotificationTest, error) {
	request := report.Shorten(n.Annotations[shipper.NotificationTestAnnotation], maxRequest)
	if request == "" || n.Status.Test != nil && n.Status.Test.Request == request {
		return n.Status.Test, nil
	}
	source, err := r.source(ctx)
	if err != nil {
		return nil, err
	}
	to, f := r.receiver(ctx, n)
	if f == nil {
		defer to.close()
		f = r.send(ctx, n, to, source, r.testEvent(n, request))
	}
	if f != nil {
		return &shipper.NotificationTest{Request: request, Message: report.Shorten(f.message, maxMessage)}, nil
	}
	b.failures, b.lastDelivery = 0, r.clock.Now()
	b.accepted()
	return &shipper.NotificationTest{Request: request, Accepted: true}, nil
}

// testEvent is about no Release.
func (r *Reconciler) testEvent(n *shipper.Notification, request string) Event {
	return Event{
		Word: testWord, ID: id(n.UID, testWord, request), Time: r.clock.Now(), Namespace: n.Namespace, Application: "test", Release: "test",
		Message: fmt.Sprintf("This is a test of Notification %s/%s.", n.Namespace, n.Name),
	}
}
