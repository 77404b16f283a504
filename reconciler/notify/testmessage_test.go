// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestAUserTestsANotification(t *testing.T) {
	s := newServer(t)
	f := newFixture(t, here, notification(func(n *shipper.Notification) { n.Spec.Format = shipper.NotificationSlack }),
		secret(s.URL+secretPath))
	asks := func(request string) *shipper.NotificationTest {
		n := &shipper.Notification{}
		if err := f.client.Get(t.Context(), f.key, n); err != nil {
			t.Fatal(err)
		}
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, shipper.NotificationTestAnnotation, request)
		if err := f.client.Update(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		f.pass()
		f.pass() // the same request sends nothing
		return f.status().Test
	}
	if diff := cmp.Diff(&shipper.NotificationTest{Request: "1", Accepted: true}, asks("1")); diff != "" {
		t.Errorf("accepted (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]map[string]any{{"text": "This is a test of Notification shop/slack."}}, s.got()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if got := f.delivering(); got != "True Delivered" {
		t.Errorf("it says %s", got)
	}
	s.does(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	got := asks("2")
	if got.Request != "2" || got.Accepted || got.Message == "" || len(s.got()) != 1 {
		t.Errorf("refused: %+v, %d messages", got, len(s.got()))
	}
}
