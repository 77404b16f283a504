// SPDX-License-Identifier: Apache-2.0

package notification_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/notification"
	"shipper.dev/shipper/webhook/response"
)

func slack(edits ...func(*shipper.NotificationSpec)) *shipper.Notification {
	n := &shipper.Notification{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "slack"}}
	n.Spec.To.SecretName = "slack"
	for _, edit := range edits {
		edit(&n.Spec)
	}
	return n
}

func to(secret string) func(*shipper.NotificationSpec) {
	return func(s *shipper.NotificationSpec) { s.To.SecretName = secret }
}

func body(text string) func(*shipper.NotificationSpec) {
	return func(s *shipper.NotificationSpec) { s.Body = text }
}

// asking annotates a Notification to ask for a test message.
func asking(request string, n *shipper.Notification) *shipper.Notification {
	metav1.SetMetaDataAnnotation(&n.ObjectMeta, shipper.NotificationTestAnnotation, request)
	return n
}

func selecting(operator metav1.LabelSelectorOperator) func(*shipper.NotificationSpec) {
	return func(s *shipper.NotificationSpec) {
		s.Applications = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: operator}}}
	}
}

func TestValidate(t *testing.T) {
	const invalid = `Notification.shipper.booking.com "slack" is invalid: `
	const mayNot = invalid + `spec.to.secretName: Forbidden: user "bob" may not get secrets/slack in shop: the author must be allowed ` +
		`to get a Secret that the object names; ask the owner of the namespace to run: kubectl -n shop create role get-secrets-slack ` +
		`--verb=get --resource=secrets --resource-name=slack; kubectl -n shop create rolebinding get-secrets-slack-bob ` +
		`--role=get-secrets-slack --user=bob`
	const ann = "ann get secrets shop/slack"
	for sentence, tc := range map[string]struct {
		req     *admission.Request
		message string
		asked   []string
	}{
		"a user who may get the Secret": {req: ask.Create("ann", slack()), asked: []string{ann}},
		"a user who may not": {
			req: ask.Create("bob", slack()), message: mayNot, asked: []string{"bob get secrets shop/slack"},
		},
		"a change to another Secret is asked for again": {
			req: ask.Update("bob", slack(), slack(to("mine"))), message: mayNot, asked: []string{"bob get secrets shop/slack"},
		},
		"a change of the body is asked for again": {
			req: ask.Update("bob", slack(body("event.message")), slack()), message: mayNot, asked: []string{"bob get secrets shop/slack"},
		},
		"a change of the Applications is asked for again": {
			req: ask.Update("bob", slack(selecting("Exists")), slack()), message: mayNot, asked: []string{"bob get secrets shop/slack"},
		},
		"a change of the format is asked for again": {
			req: ask.Update("bob", slack(func(s *shipper.NotificationSpec) { s.Format = shipper.NotificationSlack }), slack()), message: mayNot,
			asked: []string{"bob get secrets shop/slack"},
		},
		"a change of the events is asked for again": {
			req: ask.Update("bob", slack(func(s *shipper.NotificationSpec) {
				s.Events = []shipper.NotificationEvent{shipper.NotificationStarted}
			}), slack()), message: mayNot, asked: []string{"bob get secrets shop/slack"},
		},
		"a test message is asked for": {
			req: ask.Update("bob", asking("2", slack()), asking("1", slack())), message: mayNot, asked: []string{"bob get secrets shop/slack"},
		},
		"a test message for a user who may get the Secret": {
			req: ask.Update("ann", asking("1", slack()), slack()), asked: []string{ann},
		},
		"a test message that was sent before is not": {req: ask.Update("bob", asking("1", slack()), asking("1", slack()))},
		"no test message any more is not":            {req: ask.Update("bob", slack(), asking("1", slack()))},
		"no change is not":                           {req: ask.Update("bob", slack(body("1")), slack(body("1")))},
		"a body that was valid is not compiled": {
			req: ask.Update("ann", slack(body("1"), selecting("Exists")), slack(body("1"))), asked: []string{ann},
		},
		"a deletion is not":                      {req: ask.Delete("bob", slack())},
		"a body that is a map":                   {req: ask.Create("ann", slack(body(`{"text": event.message}`))), asked: []string{ann}},
		"a selector of Applications with a team": {req: ask.Create("ann", slack(selecting("Exists"))), asked: []string{ann}},
		"a body that is no map and no text": {
			req:     ask.Create("ann", slack(body("event.step"))),
			asked:   []string{ann},
			message: invalid + `spec.body: Invalid value: "event.step": must be a map or a text, is int`,
		},
		"a body with a field that there is not": {
			req:     ask.Create("ann", slack(body("event.mesage"))),
			asked:   []string{ann},
			message: invalid + `spec.body: Invalid value: "event.mesage": does not compile: 1:6: undefined field 'mesage'`,
		},
		"a body is not compiled for a user who may not get the Secret": {
			req: ask.Create("bob", slack(body("event.step"))), message: mayNot, asked: []string{"bob get secrets shop/slack"},
		},
		"a selector that is none": {
			req:     ask.Create("ann", slack(selecting("Like"))),
			message: invalid + `spec.applications.matchExpressions[0].operator: Invalid value: "Like": not a valid selector operator`,
		},
		"no Secret": {
			req:     ask.Create("ann", slack(to(""))),
			message: invalid + `spec.to.secretName: Required value: name the Secret with the URL that gets the messages`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			rights := ask.Grant(ann)
			hook := &notification.Webhook{Authz: rights}
			decision := response.Decision("")
			if tc.message != "" {
				decision = response.Invalid
			}
			ask.CheckRefusal(t, hook.Validate(t.Context(), tc.req, &response.Response{}), decision, tc.message)
			if diff := cmp.Diff(tc.asked, rights.Asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithoutAnAnswerTheUserIsAskedToTryAgain(t *testing.T) {
	hook := &notification.Webhook{Authz: &ask.Rights{Err: errors.New("no answer")}}
	err := hook.Validate(t.Context(), ask.Create("ann", slack()), &response.Response{})
	ask.CheckRefusal(t, err, response.Unavailable, "no answer")
}

func TestAnExpressionThatIsNotLookedAtInTimeMayBeSentAgain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	hook := &notification.Webhook{Authz: ask.Grant("ann get secrets shop/slack")}
	err := hook.Validate(ctx, ask.Create("ann", slack(body("event.message"))), &response.Response{})
	ask.CheckRefusal(t, err, response.Unavailable, "waited too long for other expressions to be compiled")
}
