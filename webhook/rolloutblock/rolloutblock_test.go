// SPDX-License-Identifier: Apache-2.0

package rolloutblock_test

import (
	"testing"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/answer"
	"shipper.dev/shipper/webhook/condition"
	"shipper.dev/shipper/webhook/rolloutblock"
)

func by(key, kind, name string) *shipper.RolloutBlock {
	b := ask.Block(key)
	b.Spec.Author = shipper.RolloutBlockAuthor{Type: kind, Name: name}
	return b
}

func saying(message string) *shipper.RolloutBlock {
	b := ask.Block("default/demo")
	b.Spec.Message = message
	return b
}

func webhookOf(t *testing.T) *rolloutblock.Webhook {
	return &rolloutblock.Webhook{
		GlobalNamespace: "global", Conditions: condition.New(), Clock: ask.Clock(), Log: testr.New(t),
	}
}

func TestTheAuthorIsStamped(t *testing.T) {
	const key = "default/demo"
	type author = shipper.RolloutBlockAuthor
	for sentence, tc := range map[string]struct {
		req  *admission.Request
		want author
	}{
		"a user": {
			ask.Create("ann", by(key, "", "")), author{Type: "user", Name: "ann"},
		},
		"a service account": {
			ask.Create("system:serviceaccount:ci:deployer", by(key, "", "")),
			author{Type: "serviceaccount", Name: "ci/deployer"},
		},
		"unless it is there": {
			ask.Create("ann", by(key, "team", "dns")), author{Type: "team", Name: "dns"},
		},
		"with a type when there is only a name": {
			ask.Create("ann", by(key, "", "jdoe")), author{Type: "user", Name: "jdoe"},
		},
		"with a name when there is only a type": {
			ask.Create("ann", by(key, "team", "")), author{Type: "user", Name: "ann"},
		},
		"the one before, when an update leaves it out": {
			ask.Update("bob", by(key, "", ""), by(key, "user", "ann")), author{Type: "user", Name: "ann"},
		},
		"who updates, when there was none before either": {
			ask.Update("bob", by(key, "", ""), by(key, "", "")), author{Type: "user", Name: "bob"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			a := &answer.Answer{}
			if err := webhookOf(t).Default(t.Context(), tc.req, a); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, ask.Patched[shipper.RolloutBlock](t, tc.req, a).Spec.Author); diff != "" {
				t.Errorf("author (-want +got):\n%s", diff)
			}
		})
	}
}

func TestABlockWithoutASpecIsLeftToTheSchema(t *testing.T) {
	req, a := ask.Create("ann", by("default/demo", "", "")), &answer.Answer{}
	req.Object.Raw = []byte(`{"metadata":{"name":"demo"}}`)
	if err := webhookOf(t).Default(t.Context(), req, a); err != nil || len(a.Patch()) > 0 {
		t.Errorf("got %v and patch %v, want neither", err, a.Patch())
	}
}

func TestBlocksAreJudged(t *testing.T) {
	const invalid = `RolloutBlock.shipper.booking.com "demo" is invalid: `
	for sentence, tc := range map[string]struct {
		req     *admission.Request
		message string
		warned  []string
		audit   map[string]string
	}{
		"a local one": {req: ask.Create("ann", ask.Block("default/demo"))},
		"a global one": {
			req: ask.Create("ann", ask.Block("global/dns")), warned: []string{"this stops rollouts in every namespace, at once"},
		},
		"one that says nothing": {
			req:     ask.Create("ann", saying(" \n")),
			message: invalid + `spec.message: Required value: tell those who are refused why, and until when`,
		},
		"one by nobody": {
			req:     ask.Create("ann", by("default/demo", "user", "")),
			message: invalid + `spec.author.name: Required value: name whom to ask`,
		},
		"what was wrong before does not hold metadata up": {req: ask.Update("ann", saying(""), saying(""))},
		"deletion is allowed and recorded": {
			req: ask.Delete("ann", ask.Block("global/dns")), audit: map[string]string{answer.AuditBlockLifted: "global/dns"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			a, decision := &answer.Answer{}, answer.Decision("")
			if tc.message != "" {
				decision = answer.Invalid
			}
			ask.CheckRefusal(t, webhookOf(t).Validate(t.Context(), tc.req, a), decision, tc.message)
			if diff := cmp.Diff(tc.warned, a.Warnings()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.audit, a.AuditAnnotations()); diff != "" {
				t.Errorf("audit annotations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatDoesNotDecode(t *testing.T) {
	req := ask.Create("ann", ask.Block("default/demo"))
	req.Object.Raw = []byte(`{"spec":7}`)
	if err := webhookOf(t).Default(t.Context(), req, &answer.Answer{}); err != nil {
		t.Errorf("mutation refused what the schema has better words for: %v", err)
	}
	if err := webhookOf(t).Validate(t.Context(), req, &answer.Answer{}); err == nil {
		t.Error("validation let it pass")
	}
	gone := ask.Delete("ann", ask.Block("default/demo"))
	gone.OldObject.Raw = nil
	err := webhookOf(t).Validate(t.Context(), gone, &answer.Answer{})
	ask.CheckRefusal(t, err, answer.Invalid, "the request has no old object")
}
