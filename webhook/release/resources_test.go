// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
)

func TestReleasesOfResources(t *testing.T) {
	placing := ask.Placing(shipper.ResourceSelector{Kind: "ConfigMap", Name: "web"})
	app, without := ask.Application(placing, ask.Content("a")), ask.Application(placing)
	now, bare := ask.Release(app, nil), ask.Release(without, nil)
	refused := func(rel *shipper.Release, why string) string {
		return `Release.shipper.booking.com "` + rel.Name + `" is invalid: ` + why
	}
	moved := now.DeepCopy()
	moved.Spec.TargetStep = 1
	for sentence, tc := range map[string]row{
		"the reconciler makes one of content": {req: ask.Create(ask.Reconciler, now), known: []client.Object{app}},
		"none is made without content": {
			req: ask.Create(ask.Reconciler, bare), known: []client.Object{without}, decision: response.Invalid,
			message: refused(bare, "spec.environment.resourcesDigest: Required value: a Release has the digest of its content"),
		},
		"there is no step to go to": {
			req: ask.Update("dev", moved, now), known: []client.Object{app}, decision: response.Invalid,
			message: refused(now, "spec.targetStep: Invalid value: 1: resources have no steps: leave it at 0"),
		},
	} {
		t.Run(sentence, tc.check)
	}
}

// Content that is taken again makes a Release that no user asked for: blocks judge it as an edit of its Application.
func TestAReleaseOfOtherContentIsJudgedAsAnEdit(t *testing.T) {
	placing := ask.Placing(shipper.ResourceSelector{Kind: "ConfigMap", Name: "web"})
	overriding := ask.Annotated(shipper.RolloutBlockOverrideAnnotation, "global/dns")
	app, overrider := ask.Application(placing), ask.Application(placing, overriding)
	completed := func(rel *shipper.Release) {
		rel.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseComplete, Status: "True"}}
	}
	of := func(content string, existing []*shipper.Release, edits ...func(*shipper.Application)) *shipper.Release {
		return ask.Release(ask.Application(append(edits, placing, ask.Content(content))...), existing)
	}
	first := of("a", nil)
	completed(first)
	second := of("b", []*shipper.Release{first})
	allowing := func(changes ...shipper.RolloutBlockChange) *shipper.RolloutBlock {
		out := ask.Block("global/dns")
		out.Spec.Allow = changes
		return out
	}
	matching := ask.Block("global/dns")
	matching.Spec.MatchConditions = []shipper.RolloutBlockMatchCondition{{
		Name: "shipper", Expression: "request.userInfo.username == '" + ask.Reconciler + "'",
	}}
	next := of("c", []*shipper.Release{first, second})
	back := of("a", []*shipper.Release{first, second})
	same := of("b", []*shipper.Release{first, second})
	blocked := func(allow string) string {
		return "rollouts blocked by: global/dns (DNS issues, troubleshooting in progress; jdoe, 12m ago" + allow + "). " +
			"To override: kubectl annotate app super-server shipper.booking.com/rollout-block.override=global/dns -n work " +
			"(the verb override on these rolloutblocks is needed)"
	}
	for sentence, tc := range map[string]row{
		"under none": {req: ask.Create(ask.Reconciler, next), known: []client.Object{app, first, second}},
		"not under one": {
			req: ask.Create(ask.Reconciler, next), known: []client.Object{app, first, second, ask.Block("global/dns")},
			decision: response.Blocked, message: blocked(""),
		},
		"nor under one that lets aborts pass": {
			req: ask.Create(ask.Reconciler, next), known: []client.Object{app, first, second, allowing(shipper.RolloutBlockAbort)},
			decision: response.Blocked, message: blocked("; lets pass: Abort"),
		},
		"content that has completed is a rollback": {
			req: ask.Create(ask.Reconciler, back), known: []client.Object{app, first, second, allowing(shipper.RolloutBlockRollback)},
		},
		"the overrides of the Application count": {
			req:   ask.Create(ask.Reconciler, of("c", []*shipper.Release{first, second}, overriding)),
			known: []client.Object{overrider, first, second, ask.Block("global/dns")},
		},
		"conditions of a block are evaluated": {
			req: ask.Create(ask.Reconciler, next), known: []client.Object{app, first, second, matching},
			decision: response.Blocked, message: blocked(""),
		},
		"and are not for the same content, which a user's edit was admitted for": {
			req: ask.Create(ask.Reconciler, same), known: []client.Object{app, first, second, matching},
		},
	} {
		t.Run(sentence, tc.check)
	}
}
