// SPDX-License-Identifier: Apache-2.0

package application_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
)

// TestATemplateThatFailedIsRefused has an Application whose version 0.0.2 failed and was aborted four minutes ago.
func TestATemplateThatFailedIsRefused(t *testing.T) {
	failed := ask.Release(ask.Application(ask.Version("0.0.2")), nil)
	failed.Name = "super-server-1-0"
	failed.Status.Progress = &shipper.ReleaseProgress{Failure: &shipper.ReleaseFailure{
		Step: 1, Cluster: "us-east-1", Reason: shipper.ProgressDeadlineExceeded, Time: metav1.NewTime(ask.Now.Add(-4 * time.Minute)),
	}}
	note, err := stamp.Fail(failed)
	if err != nil {
		t.Fatal(err)
	}
	noted := ask.Annotated(shipper.AppFailedAnnotation, note)
	odd := ask.Annotated(shipper.AppFailedAnnotation, "{")
	retry := func(value string) func(*shipper.Application) {
		return ask.Annotated(shipper.AppFailedRetryAnnotation, value)
	}
	const refusal = `Application.shipper.booking.com "super-server" is invalid: spec.template: Forbidden: this failed ` +
		`(ProgressDeadlineExceeded) at step 1 in us-east-1, 4m ago, as Release super-server-1-0, and was aborted: change it, or set the ` +
		`annotation shipper.booking.com/app.failed.retry to a new value`
	app := ask.Application
	for sentence, tc := range map[string]struct {
		now, old *shipper.Application
		message  string
	}{
		"when it is applied again":         {app(ask.Version("0.0.2"), noted), app(noted), refusal},
		"not when it changes":              {app(ask.Version("0.0.3"), noted), app(noted), ""},
		"not when it is to be tried again": {app(ask.Version("0.0.2"), noted, retry("1")), app(noted), ""},
		"when it was tried again before":   {app(ask.Version("0.0.2"), noted, retry("1")), app(noted, retry("1")), refusal},
		"not while it is what is there":    {app(ask.Version("0.0.2"), noted), app(ask.Version("0.0.2"), noted), ""},
		"not when the note is none":        {app(ask.Version("0.0.2"), odd), app(odd), ""},
		"not when something else failed":   {app(ask.Version("0.0.2")), app(), ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := webhookOf(t, ask.Grant(), &catalog{})
			decision := response.Decision("")
			if tc.message != "" {
				decision = response.Invalid
			}
			ask.CheckRefusal(t, w.Validate(t.Context(), ask.Update("dev", tc.now, tc.old), &response.Response{}), decision, tc.message)
		})
	}
}
