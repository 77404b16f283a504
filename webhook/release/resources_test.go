// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"strings"
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

// To delete a Release changes what is placed: the user needs the right to place what goes and what comes back. The abort of a rollout goes
// back to what ran, and may be all that helps in an incident: there the rights of the recorded user are enough, while that user has them.
func TestDeletionsOfReleasesWithResources(t *testing.T) {
	selecting := func(namespace string) func(*shipper.Application) {
		return ask.Placing(shipper.ResourceSelector{Kind: "ConfigMap", Name: "web", Namespace: namespace})
	}
	app := ask.Application(selecting(""), ask.SelectedBy("ann"))
	of := func(namespace string, completed bool, existing ...*shipper.Release) *shipper.Release {
		rel := ask.Release(ask.Application(selecting(namespace), ask.Content("a")), existing)
		if completed {
			rel.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseComplete, Status: "True"}}
		}
		return rel
	}
	payments := of("payments", true)
	own, begun := of("", true, payments), of("", false, payments)
	last := of("vault", true, payments, own)
	others, enveloped := of("payments", false), of("", false)
	enveloped.Annotations[shipper.ContentRightsAnnotation] = "namespaces/payments"
	unrecorded := ask.Release(ask.Application(ask.Content("a"),
		ask.Placing(shipper.ResourceSelector{Group: shipper.GroupName, Kind: "Envelope", Name: "guard"})), nil)
	const mayPlace, annMayPlace, mayGet = "dev place namespaces /payments", "ann place namespaces /payments", "dev get configmaps work/web"
	lacks := "deleting it changes what is placed: spec.template.resources.select[0]: you may not place namespaces " +
		`"payments" on clusters: that needs the verb "place" on it; ` +
		"kubectl create clusterrole place-namespaces-payments --verb=place --resource=namespaces --resource-name=payments; " +
		"kubectl create clusterrolebinding place-namespaces-payments-dev --clusterrole=place-namespaces-payments --user=dev; " +
		`user "ann" changed spec last, and may be asked; whether that user may: kubectl auth can-i place namespaces/payments --as=ann`
	everything := "deleting it changes what is placed: spec.template.resources.select: an Envelope has objects of others: you may not " +
		`place all *.* on clusters: that needs the verb "place" on it; kubectl create clusterrole place-- --verb=place ` +
		"--resource='*.*'; kubectl create clusterrolebinding place---dev --clusterrole=place-- --user=dev; " +
		`user "ann" changed spec last, and may be asked; whether that user may: kubectl auth can-i place '*.*' --as=ann`
	aborts := "deleting the newest Release aborts its rollout: Application super-server goes back to Release " + payments.Name
	again := "this is the only Release of Application super-server: Shipper makes it again from the template"
	for sentence, tc := range map[string]row{
		"the newest is complete, and what came before is another's": {
			req: ask.Delete("dev", own), rights: []string{mayGet, annMayPlace}, known: []client.Object{app, payments, own},
			decision: response.Forbidden, message: lacks,
		},
		"a user with the right": {
			req: ask.Delete("dev", own), rights: []string{mayGet, mayPlace}, known: []client.Object{app, payments, own},
			warned: []string{aborts},
		},
		"an abort, while the recorded user has the right": {
			req: ask.Delete("dev", begun), rights: []string{annMayPlace}, known: []client.Object{app, payments, begun},
			warned: []string{
				"you may not place all of it: this is admitted because Release " + begun.Name +
					" is not complete, and what ran before comes back", aborts,
			},
		},
		"an abort, when the recorded user has lost it": {
			req: ask.Delete("dev", begun), rights: []string{mayGet}, known: []client.Object{app, payments, begun},
			decision: response.Forbidden, message: lacks,
		},
		"the only one, whose objects go": {
			req: ask.Delete("dev", others), rights: []string{annMayPlace}, known: []client.Object{app, others},
			decision: response.Forbidden, message: lacks,
		},
		"one whose Envelope holds objects of others": {
			req: ask.Delete("dev", enveloped), rights: []string{mayGet}, known: []client.Object{app, enveloped},
			decision: response.Forbidden,
			message:  strings.Replace(lacks, "select[0]: you", "select: an Envelope has objects of others: you", 1),
		},
		"one of an earlier version, whose Envelopes are not known": {
			req: ask.Delete("dev", unrecorded), rights: []string{"dev get envelopes work/guard", mayPlace}, known: []client.Object{app, unrecorded},
			decision: response.Forbidden, message: everything,
		},
		"the only one, by a user with the right": {
			req: ask.Delete("dev", others), rights: []string{mayPlace}, known: []client.Object{app, others}, warned: []string{again},
		},
		"one that runs while the newest is not complete": {
			req: ask.Delete("dev", payments), rights: []string{mayGet, annMayPlace}, known: []client.Object{app, payments, begun},
			decision: response.Forbidden, message: lacks,
		},
		"one of the history": {req: ask.Delete("dev", payments), known: []client.Object{app, payments, own, last}},
		"the reconciler":     {req: ask.Delete(ask.Reconciler, own), known: []client.Object{app, payments, own}},
	} {
		t.Run(sentence, tc.check)
	}
}
