// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
	"shipper.dev/shipper/webhook/snapshot"
)

func TestOnlyShipperAndWhoMayStampWriteSnapshots(t *testing.T) {
	o := &shipper.ResourceSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "a"}}
	const refused = `ResourceSnapshots are made by Shipper from what an Application selects (user "dev" does not have the verb stamp on ` +
		"resourcesnapshots.shipper.booking.com)"
	for user, want := range map[string]response.Decision{"dev": response.Forbidden, "ann": "", ask.Reconciler: ""} {
		t.Run(user, func(t *testing.T) {
			w := ask.Know(t, ask.Grant("ann stamp resourcesnapshots work/a"))
			hook := &snapshot.Webhook{Guard: w.Guard}
			ask.CheckRefusal(t, hook.Validate(t.Context(), ask.Create(user, o), &response.Response{}), want, refused)
			ask.CheckRefusal(t, hook.Validate(t.Context(), ask.Update(user, o, o), &response.Response{}), want, refused)
			ask.CheckRefusal(t, hook.Validate(t.Context(), ask.Delete(user, o), &response.Response{}), "", "")
		})
	}
}
