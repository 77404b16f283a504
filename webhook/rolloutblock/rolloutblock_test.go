// SPDX-License-Identifier: Apache-2.0

package rolloutblock_test

import (
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/matchconditions"
	"shipper.dev/shipper/webhook/response"
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
		GlobalNamespace: "global", Conditions: matchconditions.New(), Clock: ask.Clock(), Log: testr.New(t),
		Clusters: func() []shipper.Cluster { return nil },
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
			a := &response.Response{}
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
	req, a := ask.Create("ann", by("default/demo", "", "")), &response.Response{}
	req.Object.Raw = []byte(`{"metadata":{"name":"demo"}}`)
	if err := webhookOf(t).Default(t.Context(), req, a); err != nil {
		t.Error(err)
	}
	if patch, err := a.Patch(); err != nil || len(patch) > 0 {
		t.Errorf("got %v and patch %v, want neither", err, patch)
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
			message: invalid + `spec.message: Required value: say why rollouts are blocked, and until when`,
		},
		"one without an author's name": {
			req:     ask.Create("ann", by("default/demo", "user", "")),
			message: invalid + `spec.author.name: Required value: name the person or team to contact`,
		},
		"what was wrong before does not hold metadata up": {req: ask.Update("ann", saying(""), saying(""))},
		"deletion is allowed and recorded": {
			req: ask.Delete("ann", ask.Block("global/dns")), audit: map[string]string{response.AuditBlockLifted: "global/dns"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			a, decision := &response.Response{}, response.Decision("")
			if tc.message != "" {
				decision = response.Invalid
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

func TestTheCreatorOfABlockIsStamped(t *testing.T) {
	const key = "default/demo"
	made := func(by string) *shipper.RolloutBlock {
		b := ask.Block(key)
		if by != "" {
			b.Annotations = map[string]string{shipper.RolloutBlockCreatedByAnnotation: by, "other": "kept"}
		}
		return b
	}
	for sentence, tc := range map[string]struct {
		req  *admission.Request
		want string
	}{
		"whatever its author says": {ask.Create("ann", by(key, "team", "dns")), "ann"},
		"a service account by its full name": {ask.Create("system:serviceaccount:ci:deployer", made("")),
			"system:serviceaccount:ci:deployer"},
		"whatever the manifest says":               {ask.Create("ann", made("boss")), "ann"},
		"for good":                                 {ask.Update("bob", made("ann"), made("ann")), "ann"},
		"for good, though it is left out":          {ask.Update("bob", made(""), made("ann")), "ann"},
		"for good, though another is named":        {ask.Update("bob", made("bob"), made("ann")), "ann"},
		"unless it was not recorded":               {ask.Update("bob", made(""), made("")), ""},
		"unless not recorded, whatever is claimed": {ask.Update("bob", made("bob"), made("")), ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			a := &response.Response{}
			if err := webhookOf(t).Default(t.Context(), tc.req, a); err != nil {
				t.Fatal(err)
			}
			got := ask.Patched[shipper.RolloutBlock](t, tc.req, a)
			if diff := cmp.Diff(tc.want, got.Annotations[shipper.RolloutBlockCreatedByAnnotation]); diff != "" {
				t.Errorf("created by (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLiftingOrWeakeningABlockIsAudited(t *testing.T) {
	block := func(edits ...func(*shipper.RolloutBlock)) *shipper.RolloutBlock {
		b := ask.Block("global/dns")
		for _, edit := range edits {
			edit(b)
		}
		return b
	}
	creator := func(name string) func(*shipper.RolloutBlock) {
		return func(b *shipper.RolloutBlock) {
			b.Annotations = map[string]string{shipper.RolloutBlockCreatedByAnnotation: name}
		}
	}
	warns := func(b *shipper.RolloutBlock) { b.Spec.Enforcement = shipper.RolloutBlockWarn }
	message := func(text string) func(*shipper.RolloutBlock) {
		return func(b *shipper.RolloutBlock) { b.Spec.Message = text }
	}
	aborts := func(b *shipper.RolloutBlock) { b.Spec.Allow = []shipper.RolloutBlockChange{shipper.RolloutBlockAbort} }
	for sentence, tc := range map[string]struct {
		req   *admission.Request
		audit map[string]string
	}{
		"lifted": {ask.Delete("ann", block(creator("bob"))), map[string]string{response.AuditBlockLifted: "global/dns"}},
		"weakened in one thing": {
			ask.Update("ann", block(warns), block()), map[string]string{response.AuditBlockWeakened: "global/dns: enforcement"},
		},
		"weakened in two": {
			ask.Update("ann", block(warns, aborts), block()),
			map[string]string{response.AuditBlockWeakened: "global/dns: allow, enforcement"},
		},
		"made stronger":      {ask.Update("ann", block(), block(warns)), nil},
		"another message":    {ask.Update("ann", block(message("other")), block()), nil},
		"labelled":           {ask.Update("ann", block(creator("x")), block()), nil},
		"refused for it all": {ask.Update("ann", block(message(" "), warns), block()), nil},
		"made":               {ask.Create("ann", block(warns)), nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			for _, dry := range []bool{false, true} {
				w, a := webhookOf(t), &response.Response{}
				tc.req.DryRun = &dry
				_ = w.Validate(t.Context(), tc.req, a)
				if diff := cmp.Diff(tc.audit, a.AuditAnnotations()); diff != "" {
					t.Errorf("dry run %v: audit annotations (-want +got):\n%s", dry, diff)
				}
			}
		})
	}
}

func TestWhatMaySurpriseIsAnnounced(t *testing.T) {
	in := func(hours int) *metav1.Time { return &metav1.Time{Time: ask.Now.Add(time.Duration(hours) * time.Hour)} }
	for sentence, tc := range map[string]struct {
		key  string
		edit func(*shipper.RolloutBlockSpec)
		want []string
	}{
		"a local one does not": {"default/demo", nil, nil},
		"a global one":         {"global/dns", nil, []string{"this stops rollouts in every namespace, at once"}},
		"a global one, in words": {
			"global/dns", func(s *shipper.RolloutBlockSpec) { s.Enforcement = shipper.RolloutBlockDeny },
			[]string{"this stops rollouts in every namespace, at once"},
		},
		"a global one that only warns does not": {
			"global/dns", func(s *shipper.RolloutBlockSpec) { s.Enforcement = shipper.RolloutBlockWarn }, nil,
		},
		"a global one of a scope does not": {
			"global/dns", func(s *shipper.RolloutBlockSpec) { s.Scope = &shipper.RolloutBlockScope{} }, nil,
		},
		"a global one on conditions does not": {"global/dns", func(s *shipper.RolloutBlockSpec) {
			s.MatchConditions = []shipper.RolloutBlockMatchCondition{{Name: "x", Expression: "true"}}
		}, nil},
		"one that comes later": {
			"global/dns", func(s *shipper.RolloutBlockSpec) { s.Schedule = &shipper.RolloutBlockSchedule{Start: in(2)} },
			[]string{"this block is not in effect now; it will be from 2026-11-21T14:00:00Z on"},
		},
		"one that is over": {
			"default/demo", func(s *shipper.RolloutBlockSpec) { s.ExpiresAt = in(0) },
			[]string{"this block is not in effect, and as it is it never will be again"},
		},
		"one that is in effect for now does not": {"default/demo", func(s *shipper.RolloutBlockSpec) { s.ExpiresAt = in(1) }, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			b, a := ask.Block(tc.key), &response.Response{}
			if tc.edit != nil {
				tc.edit(&b.Spec)
			}
			ask.CheckRefusal(t, webhookOf(t).Validate(t.Context(), ask.Create("ann", b), a), "", "")
			if diff := cmp.Diff(tc.want, a.Warnings()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatABlockSaysMustBeReadable(t *testing.T) {
	const invalid = `RolloutBlock.shipper.booking.com "demo" is invalid: `
	windows := func(cron, zone string, d time.Duration) func(*shipper.RolloutBlockSpec) {
		return func(s *shipper.RolloutBlockSpec) {
			s.Schedule = &shipper.RolloutBlockSchedule{Windows: []shipper.RolloutBlockWindow{
				{Cron: "0 0 * * *", Duration: metav1.Duration{Duration: time.Hour}},
				{Cron: cron, TimeZone: zone, Duration: metav1.Duration{Duration: d}},
			}}
		}
	}
	condition := func(text string) func(*shipper.RolloutBlockSpec) {
		return func(s *shipper.RolloutBlockSpec) {
			s.MatchConditions = []shipper.RolloutBlockMatchCondition{{Name: "x", Expression: text}}
		}
	}
	for sentence, tc := range map[string]struct {
		edit func(*shipper.RolloutBlockSpec)
		want string
	}{
		"a time to live": {
			func(s *shipper.RolloutBlockSpec) { s.TTL = &metav1.Duration{} }, `spec.ttl: Invalid value: "0s": must be more than nothing`,
		},
		"an end before the start": {
			func(s *shipper.RolloutBlockSpec) {
				now := metav1.Time{Time: ask.Now}
				s.Schedule = &shipper.RolloutBlockSchedule{Start: &now, End: &now}
			}, `spec.schedule.end: Invalid value: "2026-11-21T12:00:00Z": must be after start`,
		},
		"a cron": {
			windows("0 0 * *", "", time.Hour), `spec.schedule.windows[1].cron: Invalid value: "0 0 * *": cron "0 0 * *": ` +
				`expected exactly 5 fields, found 4: [0 0 * *]; write minute, hour, day of month, month and day of week, like "0 18 * * FRI"`,
		},
		"a zone": {
			windows("0 0 * * *", "Mars", time.Hour),
			`spec.schedule.windows[1].timeZone: Invalid value: "Mars": is not an IANA time zone, like Europe/Amsterdam`,
		},
		"a duration": {
			windows("0 0 * * *", "", time.Second), `spec.schedule.windows[1].duration: Invalid value: "1s": must be from 1m to 8784h`,
		},
		"a selector": {
			func(s *shipper.RolloutBlockSpec) {
				s.Scope = &shipper.RolloutBlockScope{Applications: &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}}
			}, `spec.scope.applications.matchLabels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', ` +
				`and must start and end with an alphanumeric character (e.g. 'MyName', or 'my.name', or '123-abc', regex used for validation is ` +
				`'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
		},
		"a condition": {
			condition("object."), `spec.matchConditions[0].expression: Invalid value: "object.": compilation failed: ERROR: <input>:1:8: ` +
				`Syntax error: no viable alternative at input '.' | object. | .......^`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			b := ask.Block("default/demo")
			tc.edit(&b.Spec)
			for _, req := range []*admission.Request{ask.Create("ann", b), ask.Update("ann", b, ask.Block("default/demo"))} {
				ask.CheckRefusal(t, webhookOf(t).Validate(t.Context(), req, &response.Response{}), response.Invalid, invalid+tc.want)
			}
		})
	}
	old, now := ask.Block("default/demo"), ask.Block("default/demo")
	condition("object.")(&old.Spec)
	condition("object.")(&now.Spec)
	now.Spec.Message = "other"
	if err := webhookOf(t).Validate(t.Context(), ask.Update("ann", now, old), &response.Response{}); err != nil {
		t.Errorf("a condition that was there before: %v", err)
	}
}

func TestWhatDoesNotDecode(t *testing.T) {
	req := ask.Create("ann", ask.Block("default/demo"))
	req.Object.Raw = []byte(`{"spec":7}`)
	if err := webhookOf(t).Default(t.Context(), req, &response.Response{}); err != nil {
		t.Errorf("mutation refused what the schema has better words for: %v", err)
	}
	if err := webhookOf(t).Validate(t.Context(), req, &response.Response{}); err == nil {
		t.Error("validation let it pass")
	}
	gone := ask.Delete("ann", ask.Block("default/demo"))
	gone.OldObject.Raw = nil
	err := webhookOf(t).Validate(t.Context(), gone, &response.Response{})
	ask.CheckRefusal(t, err, response.Invalid, "the request has no old object")
}
