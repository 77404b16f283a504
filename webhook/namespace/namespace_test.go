// SPDX-License-Identifier: Apache-2.0

package namespace_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/namespace"
	"shipper.dev/shipper/webhook/response"
)

// named edits the name of an Application.
func named(name string) func(*shipper.Application) {
	return func(app *shipper.Application) { app.Name = name }
}

// in is ns as it is deleted.
func in(name string, edits ...func(*corev1.Namespace)) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, edit := range edits {
		edit(ns)
	}
	return ns
}

func scoped(b *shipper.RolloutBlock, scope shipper.RolloutBlockScope) *shipper.RolloutBlock {
	b.Spec.Scope = &scope
	return b
}

// of sets the label of a team, and team selects it.
func of(name string) func(*shipper.Application) {
	return func(app *shipper.Application) { app.Labels = map[string]string{"team": name} }
}

func team(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"team": name}}
}

func reasoned(b *shipper.RolloutBlock) *shipper.RolloutBlock {
	b.Spec.RequireOverrideReason = true
	return b
}

func enforced(b *shipper.RolloutBlock, how shipper.RolloutBlockEnforcement) *shipper.RolloutBlock {
	b.Spec.Enforcement = how
	return b
}

func TestDeletion(t *testing.T) {
	app := ask.Application()
	type answer struct {
		Warnings []string
		Audit    map[string]string
	}
	const why = " (DNS issues, troubleshooting in progress; jdoe, 12m ago). "
	const right = " (the verb override on these rolloutblocks is needed)"
	for sentence, tc := range map[string]struct {
		known   []client.Object
		ns      *corev1.Namespace
		unready error
		refused string
		answer  answer
	}{
		"an empty one goes under a block": {known: []client.Object{ask.Block("global/dns")}},
		"one with Applications goes when nothing stops them": {
			known: []client.Object{app, ask.Block("other/dns")},
		},
		"under a block it stays, with the way to override": {
			known: []client.Object{app, ask.Block("global/dns")},
			refused: "with namespace default would go Application super-server: rollouts blocked by: global/dns" + why +
				"To override: kubectl annotate app --all shipper.booking.com/rollout-block.override=global/dns -n default" + right,
			answer: answer{Audit: map[string]string{"blocks-met": "global/dns"}},
		},
		"when every Application overrides the block it goes": {
			known: []client.Object{
				ask.Application(ask.Overriding("global/dns")), ask.Application(named("b"), ask.Overriding("global/dns")),
				ask.Block("global/dns"),
			},
			answer: answer{Audit: map[string]string{"blocks-overridden": "global/dns"}},
		},
		"what is overridden by some is added to, and those it stops are named": {
			known: []client.Object{
				ask.Application(ask.Overriding("global/dns")), ask.Application(named("f")), ask.Application(named("e")),
				ask.Application(named("d")), ask.Application(named("c")), ask.Application(named("b")), ask.Application(named("a")),
				ask.Block("global/dns"), scoped(ask.Block("global/early"), shipper.RolloutBlockScope{Charts: []string{"httpd"}}),
				scoped(ask.Block("global/late"), shipper.RolloutBlockScope{Charts: []string{"nginx"}}),
				ask.Release(ask.Application(named("c")), nil),
			},
			refused: "with namespace default would go Applications a, b, c, d, e and 1 more: rollouts blocked by: global/dns" +
				" (DNS issues, troubleshooting in progress; jdoe, 12m ago), global/late" + why +
				"To override: kubectl annotate app --all shipper.booking.com/rollout-block.override=global/dns,global/late " +
				"-n default --overwrite" + right,
			answer: answer{Audit: map[string]string{"blocks-met": "global/dns,global/late", "blocks-overridden": "global/dns"}},
		},
		"what one overrides and another is held by are named for both, with the reasons that either wants": {
			known: []client.Object{
				ask.Application(of("a"), ask.Overriding("global/early")), ask.Application(named("b"), of("b")),
				reasoned(scoped(ask.Block("global/early"), shipper.RolloutBlockScope{Applications: team("a")})),
				scoped(ask.Block("global/late"), shipper.RolloutBlockScope{Applications: team("b")}),
			},
			refused: "with namespace default would go Application b: rollouts blocked by: global/late" + why +
				"To override: kubectl annotate app --all shipper.booking.com/rollout-block.override=global/early,global/late " +
				"-n default shipper.booking.com/rollout-block.override-reason='<why>' --overwrite" + right,
			answer: answer{Audit: map[string]string{"blocks-met": "global/late", "blocks-overridden": "global/early"}},
		},
		"a label that was taken off before still counts": {
			known: []client.Object{
				app, ask.Release(ask.Application(of("a")), nil),
				scoped(ask.Block("global/dns"), shipper.RolloutBlockScope{Applications: team("a")}),
			},
			refused: "with namespace default would go Application super-server: rollouts blocked by: global/dns" + why +
				"To override: kubectl annotate app --all shipper.booking.com/rollout-block.override=global/dns -n default" + right,
			answer: answer{Audit: map[string]string{"blocks-met": "global/dns"}},
		},
		"a block that only warns does so": {
			known: []client.Object{app, enforced(ask.Block("global/dns"), shipper.RolloutBlockWarn)},
			answer: answer{
				Warnings: []string{"rollouts are asked to wait by: global/dns (DNS issues, troubleshooting in progress; jdoe, 12m ago)"},
				Audit:    map[string]string{"blocks-warned": "global/dns"},
			},
		},
		"one that is going already is not kept": {
			known: []client.Object{app, ask.Block("global/dns")},
			ns:    in("default", func(ns *corev1.Namespace) { ns.DeletionTimestamp = &metav1.Time{Time: ask.Now} }),
		},
		"without reliable caches it goes, with a warning": {
			known:   []client.Object{app, ask.Block("global/dns")},
			unready: errors.New("the API server is lost"),
			answer: answer{Warnings: []string{
				"whether RolloutBlocks hold what is in this namespace was not judged: the API server is lost",
			}},
		},
		"blocks that go with it are warned of": {
			known: []client.Object{ask.Block("default/b"), ask.Block("default/a")},
			answer: answer{
				Warnings: []string{"with it go RolloutBlocks that stop rollouts in this namespace: default/a,default/b"},
				Audit:    map[string]string{"block-lifted": "default/a,default/b"},
			},
		},
		"global blocks are warned of as such": {
			known: []client.Object{ask.Block("global/dns")}, ns: in("global"),
			answer: answer{
				Warnings: []string{"with it go RolloutBlocks that stop rollouts in every namespace: global/dns"},
				Audit:    map[string]string{"block-lifted": "global/dns"},
			},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			world := ask.Know(t, ask.Grant(), tc.known...)
			w := &namespace.Webhook{
				BlockCheck: world.BlockCheck, State: world.State, Ready: func(context.Context) error { return tc.unready },
			}
			ns := tc.ns
			if ns == nil {
				ns = in("default")
			}
			a := &response.Response{}
			err := w.Validate(t.Context(), ask.Delete("dev", ns), a)
			decision := response.Blocked
			if tc.refused == "" {
				decision = ""
			}
			ask.CheckRefusal(t, err, decision, tc.refused)
			got := answer{a.Warnings(), a.AuditAnnotations()}
			if diff := cmp.Diff(tc.answer, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
			var refusal *response.Refusal
			if errors.As(err, &refusal) && (refusal.Status.Details.Kind != "namespaces" || refusal.Status.Details.Group != "") {
				t.Errorf("it is about %v", refusal.Status.Details)
			}
		})
	}
}
