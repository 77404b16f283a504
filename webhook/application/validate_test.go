// SPDX-License-Identifier: Apache-2.0

package application_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
)

const overrideKey = "metadata.annotations[shipper.booking.com/rollout-block.override]"

const blockedStory = "rollouts blocked by: global/dns (DNS issues, troubleshooting in progress; jdoe, 12m ago). To override: "

const needed = " (the verb override on these rolloutblocks is needed)"

func labelled(key, value string) func(*shipper.Application) {
	return func(app *shipper.Application) { app.Labels = map[string]string{key: value} }
}

func named(name string) func(*shipper.Application) {
	return func(app *shipper.Application) { app.Name = name }
}

func TestApplicationsAreJudged(t *testing.T) {
	dns, local := ask.Block("global/dns"), ask.Block("elsewhere/demo")
	overrider := "dev override rolloutblocks global/dns"
	pinned := ask.Application(ask.Pinned("0.0.1"))
	const invalid = `Application.shipper.booking.com "super-server" is invalid: `
	scoped := ask.Block("global/dns")
	scoped.Spec.Scope = &shipper.RolloutBlockScope{Applications: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "a"}}}
	scoped.Spec.Allow = []shipper.RolloutBlockChange{shipper.RolloutBlockRollback}
	for name, tc := range map[string]struct {
		req      *admission.Request
		rights   []string
		known    []client.Object
		decision response.Decision
		message  string
		asked    []string
	}{
		"a label that is taken off to leave the scope of a block": {
			req: ask.Update("dev", ask.Application(), ask.Application(labelled("tier", "a"))), known: []client.Object{scoped},
			decision: response.Blocked,
			message: "rollouts blocked by: global/dns (DNS issues, troubleshooting in progress; jdoe, 12m ago; lets pass: Rollback). " +
				"To override: kubectl annotate app super-server shipper.booking.com/rollout-block.override=global/dns -n default " +
				"(the verb override on these rolloutblocks is needed)",
		},
		"a label that is taken off with an override": {
			req: ask.Update("dev", ask.Application(ask.Overriding("global/dns")),
				ask.Application(labelled("tier", "a"), ask.Overriding("global/dns"))), known: []client.Object{scoped},
		},
		"a label by which the scope of a block is entered": {
			req: ask.Update("dev", ask.Application(labelled("tier", "a")), ask.Application()), known: []client.Object{scoped},
		},
		"a label that no scope asks for, under a block": {
			req:   ask.Update("dev", ask.Application(labelled("team", "b")), ask.Application(labelled("team", "a"))),
			known: []client.Object{dns, scoped},
		},
		"a good one is created": {req: ask.Create("dev", ask.Application())},
		"a constraint that was not resolved": {
			req: ask.Create("dev", ask.Application(ask.Version("~0.0"))), decision: response.Invalid,
			message: invalid + `spec.template.chart.version: Invalid value: "~0.0": must be an exact version here; ` +
				`constraints are resolved in Applications, by Shipper's mutating webhook`,
		},
		"an observed generation that a user writes": {
			req:      ask.Update("dev", ask.Application(ask.Annotated(shipper.AppHighestObservedGenerationAnnotation, "9")), ask.Application()),
			decision: response.Invalid,
			message: invalid + `metadata.annotations[shipper.booking.com/app.highestObservedGeneration]: Forbidden: ` +
				`is written by Shipper; leave it out`,
			asked: []string{"dev stamp applications default/super-server"},
		},
		"an observed generation that the reconciler writes": {
			req: ask.Update(ask.Reconciler, ask.Application(ask.Annotated(shipper.AppHighestObservedGenerationAnnotation, "9")), ask.Application()),
		},
		"a name that cannot be a label": {
			req: ask.Create("dev", ask.Application(named(strings.Repeat("a", 64)))), decision: response.Invalid,
			message: `Application.shipper.booking.com "` + strings.Repeat("a", 64) + `" is invalid: metadata.name: Invalid value: "` +
				strings.Repeat("a", 64) + `": is a label of all that is installed: must be no more than 63 bytes`,
		},
		"a name whose Release cannot be a label": {
			req: ask.Create("dev", ask.Application(named(strings.Repeat("a", 53)))), decision: response.Invalid,
			message: `Application.shipper.booking.com "` + strings.Repeat("a", 53) + `" is invalid: metadata.name: Invalid value: "` +
				strings.Repeat("a", 53) + `": stamping release of application "` + strings.Repeat("a", 53) + `": "` +
				strings.Repeat("a", 53) + `-8c60a3ae-0" cannot be the name of a release: must be no more than 63 bytes; choose a shorter name`,
		},
		"a workaround label that means nothing": {
			req: ask.Create("dev", ask.Application(labelled(shipper.HelmWorkaroundLabel, "maybe"))), decision: response.Invalid,
			message: invalid + `metadata.labels[enable-helm-release-workaround]: Unsupported value: "maybe": supported values: "true", "false"`,
		},
		"the same label, there since long ago": {
			req: ask.Update("dev", ask.Application(labelled(shipper.HelmWorkaroundLabel, "maybe"), changed),
				ask.Application(labelled(shipper.HelmWorkaroundLabel, "maybe"))),
		},
		"a block stops creation": {
			req: ask.Create("dev", ask.Application()), known: []client.Object{dns}, decision: response.Blocked,
			message: blockedStory + "add the annotation shipper.booking.com/rollout-block.override: global/dns" + needed,
		},
		"a block stops a change of spec": {
			req: ask.Update("dev", ask.Application(changed), ask.Application()), known: []client.Object{dns},
			decision: response.Blocked,
			message:  blockedStory + "kubectl annotate app super-server shipper.booking.com/rollout-block.override=global/dns -n default" + needed,
		},
		"a block stops deletion": {
			req: ask.Delete("dev", ask.Application()), known: []client.Object{dns}, decision: response.Blocked,
			message: blockedStory + "kubectl annotate app super-server shipper.booking.com/rollout-block.override=global/dns -n default" + needed,
		},
		"a block elsewhere stops nothing": {
			req: ask.Create("dev", ask.Application()), known: []client.Object{local},
		},
		"a block does not stop a change of metadata": {
			req: ask.Update("dev", ask.Application(ask.Annotated("a", "b")), ask.Application()), known: []client.Object{dns},
		},
		"a block does not stop deletion with the namespace": {
			req: ask.Delete("dev", ask.Application()), known: []client.Object{dns, ask.GoingNamespace("default")},
		},
		"an override lets creation through": {
			req: ask.Create("dev", ask.Application(ask.Overriding("global/dns"))), known: []client.Object{dns},
			rights: []string{overrider}, asked: []string{overrider},
		},
		"an override that was there needs no right": {
			req:   ask.Update("dev", ask.Application(ask.Overriding("global/dns"), changed), ask.Application(ask.Overriding("global/dns"))),
			known: []client.Object{dns},
		},
		"an override that is taken away needs no right": {
			req:   ask.Update("dev", ask.Application(), ask.Application(ask.Overriding("global/dns"))),
			known: []client.Object{dns},
		},
		"an override lets deletion through": {
			req: ask.Delete("dev", ask.Application(ask.Overriding("global/dns"))), known: []client.Object{dns},
		},
		"an override without the right": {
			req: ask.Create("dev", ask.Application(ask.Overriding("global/dns"))), known: []client.Object{dns},
			asked: []string{overrider}, decision: response.Forbidden,
			message: `user "dev" may not override RolloutBlock global/dns: the verb override on resource ` +
				`rolloutblocks.shipper.booking.com named dns in namespace global is needed`,
		},
		"an override without the right, as the only change": {
			req:   ask.Update("dev", ask.Application(ask.Overriding("global/dns")), ask.Application()),
			known: []client.Object{dns},
			asked: []string{overrider}, decision: response.Forbidden,
			message: `user "dev" may not override RolloutBlock global/dns: the verb override on resource ` +
				`rolloutblocks.shipper.booking.com named dns in namespace global is needed`,
		},
		"an override of one of two blocks": {
			req:   ask.Update("dev", ask.Application(ask.Overriding("global/dns"), changed), ask.Application(ask.Overriding("global/dns"))),
			known: []client.Object{dns, ask.Block("default/demo")}, decision: response.Blocked,
			message: "rollouts blocked by: default/demo (DNS issues, troubleshooting in progress; jdoe, 12m ago). To override: " +
				"kubectl annotate app super-server shipper.booking.com/rollout-block.override=default/demo,global/dns -n default --overwrite" + needed,
		},
		"an override that is malformed": {
			req: ask.Create("dev", ask.Application(ask.Overriding("dns"))), decision: response.Invalid,
			message: invalid + overrideKey + `: Invalid value: "dns": "dns" is not namespace/name of a RolloutBlock; ` +
				`list the blocks to override as namespace/name, separated by commas`,
		},
		"an override of a block that does not exist": {
			req: ask.Create("dev", ask.Application(ask.Overriding("global/typo"))), decision: response.Invalid,
			message: invalid + overrideKey + `: Invalid value: "global/typo": there is no RolloutBlock global/typo: take it out of the annotation`,
		},
		"an override of a block that stops others": {
			req: ask.Create("dev", ask.Application(ask.Overriding("elsewhere/demo"))), known: []client.Object{local},
			decision: response.Invalid,
			message: invalid + overrideKey + `: Invalid value: "elsewhere/demo": RolloutBlock elsewhere/demo does not stop rollouts in ` +
				`namespace default: only blocks in that namespace and in global do; take it out of the annotation`,
		},
		"an override that dangles does not hold metadata up": {
			req: ask.Update("dev", ask.Application(ask.Overriding("global/gone"), ask.Annotated("a", "b")),
				ask.Application(ask.Overriding("global/gone"))),
		},
		"an override that dangles is refused with a change of spec that mutation did not see": {
			req:      ask.Update("dev", ask.Application(ask.Overriding("global/gone"), changed), ask.Application()),
			decision: response.Invalid,
			message:  invalid + overrideKey + `: Invalid value: "global/gone": there is no RolloutBlock global/gone: take it out of the annotation`,
		},
		"an old error does not stop metadata edits": {
			req: ask.Update("dev", ask.Application(ask.Version("~9"), ask.Annotated("a", "b")), ask.Application(ask.Version("~9"))),
		},
		"all errors are reported at once": {
			req: ask.Create("dev", ask.Application(ask.Version("~0"), ask.Overriding("dns"))), decision: response.Invalid,
			message: invalid + `[spec.template.chart.version: Invalid value: "~0": must be an exact version here; constraints are resolved ` +
				`in Applications, by Shipper's mutating webhook, ` + overrideKey + `: Invalid value: "dns": "dns" is not namespace/name of a ` +
				`RolloutBlock; list the blocks to override as namespace/name, separated by commas]`,
		},
		"a deletion of which nothing is known": {req: ask.Delete("dev", &shipper.Application{ObjectMeta: pinned.ObjectMeta})},
	} {
		t.Run(name, func(t *testing.T) {
			rights := ask.Grant(tc.rights...)
			err := webhookOf(t, rights, exact(), tc.known...).Validate(t.Context(), tc.req, &response.Response{})
			ask.CheckRefusal(t, err, tc.decision, tc.message)
			if diff := cmp.Diff(tc.asked, rights.Asked); diff != "" {
				t.Errorf("rights asked for (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRightsThatCannotBeAsked(t *testing.T) {
	rights := ask.Grant()
	rights.Err = errors.New("API server is away")
	err := webhookOf(t, rights, exact(), ask.Block("global/dns")).
		Validate(t.Context(), ask.Create("dev", ask.Application(ask.Overriding("global/dns"))), &response.Response{})
	ask.CheckRefusal(t, err, response.Unavailable, "API server is away")
}

func halting(app *shipper.Application) { app.Spec.DriftPolicy = shipper.DriftHalt }

func TestWhatAnEditMakesIsAnnounced(t *testing.T) {
	app := ask.Application(ask.Pinned("0.0.1"))
	rel := ask.Release(app, nil)
	for name, tc := range map[string]struct {
		req    *admission.Request
		known  []client.Object
		warned []string
		audit  map[string]string
	}{
		"the first Release": {
			req: ask.Create("dev", app), warned: []string{"this makes Release super-server-8c60a3ae-0"},
			audit: map[string]string{response.AuditReleaseStamped: "super-server-8c60a3ae-0"},
		},
		"the next Release": {
			req: ask.Update("dev", ask.Application(ask.Pinned("0.0.1"), changed), app), known: []client.Object{rel},
			warned: []string{"this makes Release super-server-b92aaa2b-0"},
			audit:  map[string]string{response.AuditReleaseStamped: "super-server-b92aaa2b-0"},
		},
		"an edit of spec that makes none": {
			req:   ask.Update("dev", ask.Application(ask.Pinned("0.0.1"), limited(ptrTo[int32](3))), app),
			known: []client.Object{rel},
		},
		"Halt with a chart": {
			req: ask.Update("dev", ask.Application(ask.Pinned("0.0.1"), halting), app), known: []client.Object{rel},
			warned: []string{"spec.driftPolicy: Halt is the same as Report with a chart: it leaves objects alone only with resources"},
		},
		"an edit of metadata": {req: ask.Update("dev", ask.Application(ask.Pinned("0.0.1"), ask.Annotated("a", "b")), app)},
		"a region that no cluster has": {
			req: ask.Create("dev", ask.Application(func(a *shipper.Application) {
				a.Spec.Template.ClusterRequirements.Regions[0].Name = "atlantis"
			})),
			warned: []string{
				"this makes Release super-server-d5e8a587-0",
				`might not roll out: no clusters can be chosen for it as they are now: region "atlantis" has 0 of the 1 schedulable clusters wanted`,
			},
			audit: map[string]string{response.AuditReleaseStamped: "super-server-d5e8a587-0"},
		},
		"a strategy that is hardly meant": {
			req: ask.Create("dev", ask.Application(func(a *shipper.Application) {
				a.Spec.Template.Strategy.Steps = a.Spec.Template.Strategy.Steps[:1]
			})),
			warned: []string{
				"the last step (staging) completes the release with 1 % of capacity and leaves 100 % to its predecessor; 100 and 0 are usual",
				"this makes Release super-server-b5f5bd80-0",
			},
			audit: map[string]string{response.AuditReleaseStamped: "super-server-b5f5bd80-0"},
		},
		"blocks that are overridden": {
			req:    ask.Update("dev", ask.Application(ask.Overriding("global/dns"), changed), ask.Application(ask.Overriding("global/dns"))),
			known:  []client.Object{ask.Block("global/dns")},
			warned: []string{"this makes Release super-server-b92aaa2b-0"},
			audit: map[string]string{
				response.AuditReleaseStamped: "super-server-b92aaa2b-0", response.AuditBlocksOverridden: "global/dns",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := &response.Response{}
			if err := webhookOf(t, ask.Grant(), exact(), tc.known...).Validate(t.Context(), tc.req, a); err != nil {
				t.Fatal(err)
			}
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
	req := ask.Create("dev", ask.Application())
	req.Object.Raw = []byte(`{"spec":{"template":{"chart":7}}}`)
	w := webhookOf(t, ask.Grant(), exact())
	if err := w.Default(t.Context(), req, &response.Response{}); err != nil {
		t.Errorf("mutation refused what the schema has better words for: %v", err)
	}
	if err := w.Validate(t.Context(), req, &response.Response{}); err == nil {
		t.Error("validation let it pass")
	}
}

func TestObjectsWithoutASpec(t *testing.T) {
	for name, raw := range map[string]string{
		"nothing":       `{"metadata":{"name":"x"}}`,
		"an empty spec": `{"metadata":{"name":"x"},"spec":{}}`,
		"no chart":      `{"metadata":{"name":"x"},"spec":{"template":{}}}`,
		"no repository": `{"metadata":{"name":"x"},"spec":{"template":{"chart":{"name":"x"}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			req, a := ask.Create("dev", &shipper.Application{ObjectMeta: metav1.ObjectMeta{Name: "x"}}), &response.Response{}
			req.Object.Raw = []byte(raw)
			if err := webhookOf(t, ask.Grant(), exact()).Default(t.Context(), req, a); err != nil {
				t.Fatal(err)
			}
			ask.Patched[map[string]any](t, req, a) // fails when a patch does not apply
		})
	}
}

// What mutation makes of an object passes validation, and mutating it again changes nothing.
func TestDefaultingTwiceIsDefaultingOnce(t *testing.T) {
	for name, app := range map[string]*shipper.Application{
		"a constraint":        ask.Application(ask.Version("~0.0"), limited(nil)),
		"no version":          ask.Application(ask.Version(""), limited(ptrTo[int32](-3))),
		"an exact version":    ask.Application(),
		"a messy override":    ask.Application(ask.Overriding(" default/demo,,default/demo ")),
		"annotations of ours": ask.Application(ask.Pinned("~7"), ask.Annotated(shipper.AppHighestObservedGenerationAnnotation, "7")),
	} {
		t.Run(name, func(t *testing.T) {
			w := webhookOf(t, ask.Grant("dev override rolloutblocks default/demo"), exact(), ask.Block("default/demo"))
			if !strings.Contains(name, "override") {
				w = webhookOf(t, ask.Grant(), exact())
			}
			req, a := ask.Create("dev", app), &response.Response{}
			if err := w.Default(t.Context(), req, a); err != nil {
				t.Fatal(err)
			}
			once := ask.Patched[shipper.Application](t, req, a)
			if err := w.Validate(t.Context(), ask.Create("dev", once), &response.Response{}); err != nil {
				t.Errorf("what mutation made is refused: %v", err)
			}
			again, b := ask.Update("dev", once, once), &response.Response{}
			if err := w.Default(t.Context(), again, b); err != nil {
				t.Fatal(err)
			}
			if len(patchOf(t, b)) > 0 {
				t.Errorf("the second time patched %v", patchOf(t, b))
			}
		})
	}
}

// TestABlockWarnsOnce warns while validating and not before: between the two the age of the block may move on, and the API server
// would take the same for something else.
func TestABlockWarnsOnce(t *testing.T) {
	b := ask.Block("default/dns")
	b.Spec.Enforcement = shipper.RolloutBlockWarn
	w := webhookOf(t, ask.Grant(), exact(), b)
	completing, validating := &response.Response{}, &response.Response{}
	app := ask.Application(func(app *shipper.Application) { app.Spec.Template.Chart.Version = "~0.0" })
	if err := w.Default(t.Context(), ask.Create(ask.Developer, app), completing); err != nil {
		t.Fatal(err)
	}
	if err := w.Validate(t.Context(), ask.Create(ask.Developer, ask.Application()), validating); err != nil {
		t.Fatal(err)
	}
	asked := func(a *response.Response) (n int) {
		for _, warning := range a.Warnings() {
			if strings.HasPrefix(warning, "rollouts are asked to wait by: default/dns") {
				n++
			}
		}
		return n
	}
	if got := [2]int{asked(completing), asked(validating)}; got != [2]int{0, 1} {
		t.Errorf("warned %d times while completing and %d times while validating: %q", got[0], got[1], completing.Warnings())
	}
}
