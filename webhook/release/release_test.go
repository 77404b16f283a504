// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/check"
	"shipper.dev/shipper/webhook/release"
	"shipper.dev/shipper/webhook/response"
)

const (
	name    = "super-server-8c60a3ae-0"
	invalid = `Release.shipper.booking.com "` + name + `" is invalid: `
	story   = "rollouts blocked by: global/dns (DNS issues, troubleshooting in progress; jdoe, 12m ago). To override: "
	needed  = " (the verb override on these rolloutblocks is needed)"
)

func webhookOf(t *testing.T, rights *ask.Rights, known ...client.Object) *release.Webhook {
	t.Helper()
	w := ask.Know(t, rights, known...)
	return &release.Webhook{
		BlockCheck: w.BlockCheck, Guard: w.Guard, State: w.State, Checks: check.NewUses(w.State, "shipper-checks"),
		Resources: w.Resources(),
	}
}

// rel is the valid first Release of the Application of package ask.
func rel(edits ...func(*shipper.Release)) *shipper.Release {
	return ask.Release(ask.Application(), nil, edits...)
}

func overriding(value string) func(*shipper.Release) {
	return ask.ReleaseAnnotated(shipper.RolloutBlockOverrideAnnotation, value)
}

type row struct {
	req      *admission.Request
	rights   []string
	known    []client.Object
	decision response.Decision
	message  string
	warned   []string
}

func (r row) check(t *testing.T) {
	t.Helper()
	a := &response.Response{}
	err := webhookOf(t, ask.Grant(r.rights...), r.known...).Validate(t.Context(), r.req, a)
	ask.CheckRefusal(t, err, r.decision, r.message)
	if diff := cmp.Diff(r.warned, a.Warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestReleasesAreMadeByShipper(t *testing.T) {
	app, dns := ask.Application(), ask.Block("global/dns")
	stamper := "ann stamp releases default/" + name
	checking := func(app *shipper.Application) {
		app.Spec.Template.Strategy.Steps[0].Checks = []shipper.StepCheck{{Check: "smoke"}}
	}
	checked := ask.Release(ask.Application(checking), nil)
	for sentence, tc := range map[string]row{
		"the reconciler makes one": {req: ask.Create(ask.Reconciler, rel()), known: []client.Object{app}},
		"a user makes none": {
			req: ask.Create("dev", rel()), known: []client.Object{app}, decision: response.Forbidden,
			message: `Releases are made by Shipper when an Application changes: edit the Application instead ` +
				`(user "dev" does not have the verb stamp on releases.shipper.booking.com)`,
		},
		"who may stamp makes one": {req: ask.Create("ann", rel()), known: []client.Object{app}, rights: []string{stamper}},
		"who restores one whose Check is gone is warned": {
			req: ask.Create("ann", checked), known: []client.Object{ask.Application(checking)}, rights: []string{
				"ann stamp releases default/" + checked.Name},
			warned: []string{`its checks cannot run: spec.environment.strategy.steps[0].checks[0].check: Invalid value: "smoke": there is no ` +
				`Check smoke in default; there are none; shared ones are named shipper-checks/NAME; apply the Check first`},
		},
		"the reconciler makes one whose Check is gone": {
			req: ask.Create(ask.Reconciler, checked), known: []client.Object{ask.Application(checking)},
		},
		"of an Application that does not exist": {
			req: ask.Create(ask.Reconciler, rel()), decision: response.Invalid,
			message: invalid + `metadata.labels[shipper-app]: Not found: "super-server"`,
		},
		"of no Application": {
			req:      ask.Create(ask.Reconciler, rel(func(r *shipper.Release) { delete(r.Labels, shipper.AppLabel) })),
			decision: response.Invalid,
			message: invalid + `[metadata.labels[shipper-app]: Required value: name the Application this is a Release of, ` +
				`metadata.name: Invalid value: "` + name + `": must be <application>-<hash of spec.environment>-<iteration>: -8c60a3ae-0]`,
		},
		"of an Application that has gone and come again": {
			req:   ask.Create(ask.Reconciler, rel(func(r *shipper.Release) { r.OwnerReferences[0].UID = "old" })),
			known: []client.Object{app}, decision: response.Invalid,
			message: invalid + `metadata.ownerReferences: Invalid value: "Application super-server (uid old)": ` +
				`must be one reference to Application super-server with uid app-uid`,
		},
		"with an inconsistent stamp": {
			req: ask.Create(ask.Reconciler, rel(func(r *shipper.Release) {
				r.Labels[shipper.ReleaseLabel], r.Labels[shipper.ReleaseHashLabel] = "x", "y"
				r.Annotations[shipper.ReleaseGenerationAnnotation] = "-1"
				r.Annotations[shipper.ReleaseTemplateIterationAnnotation] = "2"
			})), known: []client.Object{app}, decision: response.Invalid,
			message: invalid + `[metadata.labels[shipper-release]: Invalid value: "x": must be the Release's own name, ` +
				`metadata.annotations[shipper.booking.com/release.generation]: Invalid value: "-1": must be a decimal number from 0 on, ` +
				`metadata.labels[shipper-release-hash]: Invalid value: "y": must be the hash of spec.environment: 8c60a3ae, ` +
				`metadata.name: Invalid value: "` + name + `": must be <application>-<hash of spec.environment>-<iteration>: super-server-8c60a3ae-2]`,
		},
		"without an iteration": {
			req: ask.Create(ask.Reconciler, rel(func(r *shipper.Release) {
				delete(r.Annotations, shipper.ReleaseTemplateIterationAnnotation)
			})), known: []client.Object{app}, decision: response.Invalid,
			message: invalid + `metadata.annotations[shipper.booking.com/release.template.iteration]: Invalid value: "": ` +
				`must be a decimal number from 0 on`,
		},
		"at a step that there is not": {
			req: ask.Create(ask.Reconciler, rel(ask.TargetStep(2))), known: []client.Object{app}, decision: response.Invalid,
			message: invalid + `spec.targetStep: Invalid value: 2: must be a step of the strategy: 0 (staging), 1 (full on)`,
		},
		"under a block": {
			req: ask.Create(ask.Reconciler, rel()), known: []client.Object{app, dns}, decision: response.Blocked,
			message: story + "kubectl annotate app super-server shipper.booking.com/rollout-block.override=global/dns -n default" + needed,
		},
		"under a block that its Application overrides": {
			req:   ask.Create(ask.Reconciler, rel(overriding("global/dns"))),
			known: []client.Object{ask.Application(ask.Overriding("global/dns")), dns},
		},
		"under a block that its Application does not override": {
			req: ask.Create(ask.Reconciler, rel(overriding("global/dns"))), known: []client.Object{app, dns},
			decision: response.Forbidden,
			message: `user "system:serviceaccount:shipper-system:shipper-mgmt-cluster" may not override RolloutBlock global/dns: the verb ` +
				`override on resource rolloutblocks.shipper.booking.com named dns in namespace global is needed`,
		},
		"by a stamper who overrides without the right": {
			req: ask.Create("ann", rel(overriding("global/dns"))), rights: []string{stamper},
			known: []client.Object{ask.Application(ask.Overriding("global/dns")), dns}, decision: response.Forbidden,
			message: `user "ann" may not override RolloutBlock global/dns: the verb ` +
				`override on resource rolloutblocks.shipper.booking.com named dns in namespace global is needed`,
		},
	} {
		t.Run(sentence, tc.check)
	}
}

func TestReleasesMove(t *testing.T) {
	dns := ask.Block("global/dns")
	app := ask.Application()
	next := ask.Release(ask.Application(ask.Version("0.0.2")), []*shipper.Release{rel()})
	command := "kubectl annotate rel " + name + " shipper.booking.com/rollout-block.override=global/dns -n default"
	right := "dev override rolloutblocks global/dns"
	for sentence, tc := range map[string]row{
		"to another step": {req: ask.Update("dev", rel(ask.TargetStep(1)), rel())},
		"to a step that there is not": {
			req: ask.Update("dev", rel(ask.TargetStep(2)), rel()), decision: response.Invalid,
			message: invalid + `spec.targetStep: Invalid value: 2: must be a step of the strategy: 0 (staging), 1 (full on)`,
		},
		"but their environment does not change": {
			req:      ask.Update("dev", rel(func(r *shipper.Release) { r.Spec.Environment.Chart.Version = "0.0.2" }), rel()),
			decision: response.Invalid,
			message:  invalid + `spec.environment: Forbidden: the Release environment must not be changed; edit the Application instead`,
		},
		"nor does the naming of their objects": {
			req:      ask.Update("dev", rel(func(r *shipper.Release) { r.Spec.Environment.Chart.Naming = shipper.NamingByApplication }), rel()),
			decision: response.Invalid,
			message:  invalid + `spec.environment: Forbidden: the Release environment must not be changed; edit the Application instead`,
		},
		"and the environment is judged before the block": {
			req:   ask.Update("dev", rel(func(r *shipper.Release) { r.Spec.Environment.Chart.Version = "0.0.2" }), rel()),
			known: []client.Object{dns}, decision: response.Invalid,
			message: invalid + `spec.environment: Forbidden: the Release environment must not be changed; edit the Application instead`,
		},
		"but not under a block": {
			req: ask.Update("dev", rel(ask.TargetStep(1)), rel()), known: []client.Object{dns}, decision: response.Blocked,
			message: story + command + needed,
		},
		"and users have checks made again": {
			req: ask.Update("dev", rel(ask.ReleaseAnnotated(shipper.ReleaseChecksRetryAnnotation, strings.Repeat("1", 64))), rel()),
		},
		"but not by a long text": {
			req:      ask.Update("dev", rel(ask.ReleaseAnnotated(shipper.ReleaseChecksRetryAnnotation, strings.Repeat("1", 65))), rel()),
			decision: response.Invalid,
			message:  invalid + `metadata.annotations[shipper.booking.com/release.checks.retry]: Too long: may not be more than 64 bytes`,
		},
		"and under a block, metadata still changes": {
			req: ask.Update("dev", rel(ask.ReleaseAnnotated("a", "b")), rel()), known: []client.Object{dns},
		},
		"under a block they override": {
			req:   ask.Update("dev", rel(ask.TargetStep(1), overriding("global/dns")), rel(overriding("global/dns"))),
			known: []client.Object{dns},
		},
		"under a block that only their Application overrides, they do not": {
			req:   ask.Update("dev", rel(ask.TargetStep(1)), rel()),
			known: []client.Object{ask.Application(ask.Overriding("global/dns")), dns}, decision: response.Blocked,
			message: story + command + needed,
		},
		"and override in the same edit, with the right": {
			req: ask.Update("dev", rel(ask.TargetStep(1), overriding("global/dns")), rel()), known: []client.Object{dns},
			rights: []string{right},
		},
		"and do not override without it": {
			req: ask.Update("dev", rel(overriding("global/dns")), rel()), known: []client.Object{dns},
			decision: response.Forbidden,
			message: `user "dev" may not override RolloutBlock global/dns: the verb override on resource ` +
				`rolloutblocks.shipper.booking.com named dns in namespace global is needed`,
		},
		"an override of nothing is refused": {
			req: ask.Update("dev", rel(overriding("global/typo")), rel()), decision: response.Invalid,
			message: invalid + `metadata.annotations[shipper.booking.com/rollout-block.override]: Invalid value: "global/typo": ` +
				`there is no RolloutBlock global/typo: take it out of the annotation`,
		},
		"and are warned when it has no effect": {
			req: ask.Update("dev", rel(ask.TargetStep(1)), rel()), known: []client.Object{app, rel(), next},
			warned: []string{"targetStep has no effect here: Release " + next.Name + " is newer, and its targetStep moves both"},
		},
		"and are not warned when it has": {
			req:   ask.Update("dev", ask.Release(ask.Application(ask.Version("0.0.2")), []*shipper.Release{rel()}, ask.TargetStep(1)), next),
			known: []client.Object{app, rel(), next},
		},
	} {
		t.Run(sentence, tc.check)
	}
}

func TestReleasesGo(t *testing.T) {
	const override = "kubectl annotate rel " + name + " shipper.booking.com/rollout-block.override=global/dns -n default"
	app, dns := ask.Application(), ask.Block("global/dns")
	now := metav1.Time{Time: ask.Now}
	going := ask.Application(func(a *shipper.Application) { a.DeletionTimestamp = &now })
	another := ask.Application(func(a *shipper.Application) { a.UID = "another" })
	next := ask.Release(ask.Application(ask.Version("0.0.2")), []*shipper.Release{rel()})
	goingNext := next.DeepCopy()
	goingNext.DeletionTimestamp = &now
	for sentence, tc := range map[string]row{
		"when nothing blocks": {req: ask.Delete("dev", rel()), known: []client.Object{app}},
		"but not under a block": {
			req: ask.Delete("dev", rel()), known: []client.Object{app, dns}, decision: response.Blocked,
			message: story + override + needed,
		},
		"under a block they override": {
			req: ask.Delete("dev", rel(overriding("global/dns"))), known: []client.Object{app, dns},
		},
		"under a block, when their Application is gone": {req: ask.Delete("dev", rel()), known: []client.Object{dns}},
		"under a block, when their Application is going": {
			req: ask.Delete("dev", rel()), known: []client.Object{going, dns},
		},
		"but not under a block, when their Application has another uid": {
			req: ask.Delete("dev", rel()), known: []client.Object{another, dns}, decision: response.Blocked,
			message: story + override + needed,
		},
		"but not under a block, when they refer to no Application": {
			req: ask.Delete("dev", rel(orphan)), known: []client.Object{app, dns}, decision: response.Blocked,
			message: story + override + needed,
		},
		"but not under a block, when only the reference names their Application": {
			req:   ask.Delete("dev", rel(func(r *shipper.Release) { r.Labels = nil })),
			known: []client.Object{app, dns}, decision: response.Blocked, message: story + override + needed,
		},
		"under a block, when nothing names their Application": {
			req:   ask.Delete("dev", rel(orphan, func(r *shipper.Release) { r.Labels = nil })),
			known: []client.Object{app, dns},
		},
		"under a block, when their namespace is going": {
			req: ask.Delete("dev", rel()), known: []client.Object{app, dns, ask.GoingNamespace("default")},
		},
		"with a word when it is the newest": {
			req: ask.Delete("dev", next), known: []client.Object{app, rel(), next},
			warned: []string{"deleting the newest Release aborts its rollout: Application super-server goes back to Release " + name},
		},
		"with a word when it is the only one": {
			req: ask.Delete("dev", rel()), known: []client.Object{app, rel()},
			warned: []string{"this is the only Release of Application super-server: Shipper makes it again from the template"},
		},
		"with a word when newer ones are going": {
			req: ask.Delete("dev", rel()), known: []client.Object{app, rel(), goingNext},
			warned: []string{"this is the only Release of Application super-server: Shipper makes it again from the template"},
		},
		"without a word when it is an old one": {req: ask.Delete("dev", rel()), known: []client.Object{app, rel(), next}},
	} {
		t.Run(sentence, tc.check)
	}
}

// TestReleasesGoWithTheirTargets has deletions that leave the targets of a Release behind, which would stay in effect for ever.
func TestReleasesGoWithTheirTargets(t *testing.T) {
	app := ask.Application()
	now := metav1.Time{Time: ask.Now}
	going := ask.Application(func(a *shipper.Application) { a.DeletionTimestamp = &now })
	older, next := rel(), ask.Release(ask.Application(ask.Version("0.0.2")), []*shipper.Release{rel()})
	kept := rel(func(r *shipper.Release) { r.Finalizers = append(r.Finalizers, metav1.FinalizerOrphanDependents) })
	const refused = "delete it without --cascade=orphan: its targets would stay, and with them what it has in the clusters, also its traffic"
	for sentence, tc := range map[string]struct {
		old     *shipper.Release
		options string
		around  []client.Object
		message string
	}{
		"in the background":                     {older, `{"propagationPolicy":"Background"}`, []client.Object{app, older, next}, ""},
		"without options":                       {older, "", []client.Object{app, older, next}, ""},
		"not without them":                      {older, `{"propagationPolicy":"Orphan"}`, []client.Object{app, older, next}, refused},
		"not in the words of early versions":    {older, `{"orphanDependents":true}`, []client.Object{app, older, next}, refused},
		"not by a finalizer":                    {kept, `{}`, []client.Object{app, kept, next}, refused},
		"in the background despite a finalizer": {kept, `{"propagationPolicy":"Background"}`, []client.Object{app, kept, next}, ""},
		"without them after the Application":    {older, `{"propagationPolicy":"Orphan"}`, []client.Object{next}, ""},
		"without them with the Application":     {older, `{"propagationPolicy":"Orphan"}`, []client.Object{going, older, next}, ""},
		"without them with the namespace": {
			older, `{"propagationPolicy":"Orphan"}`, []client.Object{app, older, next, ask.GoingNamespace("default")}, "",
		},
	} {
		req := ask.Delete("dev", tc.old)
		req.Options.Raw = []byte(tc.options)
		decision := response.Decision("")
		if tc.message != "" {
			decision = response.Forbidden
		}
		t.Run(sentence, row{req: req, known: tc.around, decision: decision, message: tc.message}.check)
	}
}

func orphan(r *shipper.Release) { r.OwnerReferences = nil }

// TestTheOwnerOfReleasesIsKept mutates and then validates, as the API server does.
func TestTheOwnerOfReleasesIsKept(t *testing.T) {
	now := metav1.Time{Time: ask.Now}
	app := ask.Application()
	going := ask.Application(func(a *shipper.Application) { a.DeletionTimestamp = &now })
	owners := func(edit func(*metav1.OwnerReference)) func(*shipper.Release) {
		return func(r *shipper.Release) { edit(&r.OwnerReferences[0]) }
	}
	forged := owners(func(ref *metav1.OwnerReference) { ref.UID = "forged" })
	another := metav1.OwnerReference{APIVersion: "shipper.booking.com/v1alpha1", Kind: "Application", Name: "other", UID: "o"}
	foreign := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "c"}
	with := func(ref metav1.OwnerReference) func(*shipper.Release) {
		return func(r *shipper.Release) { r.OwnerReferences = append(r.OwnerReferences, ref) }
	}
	const refusal = invalid + "metadata.ownerReferences: Forbidden: the reference to Application is written by Shipper; " +
		"leave it at super-server with uid app-uid"
	for sentence, tc := range map[string]struct {
		user     string
		now, old *shipper.Release
		app      *shipper.Application
		want     *shipper.Release
		refuse   bool
	}{
		"left out, it comes back":                       {user: "bob", now: rel(orphan), old: rel(), app: app, want: rel()},
		"left out by the reconciler, it comes back":     {user: ask.Reconciler, now: rel(orphan), old: rel(), app: app, want: rel()},
		"left out while it is going, it is gone":        {user: "gc", now: rel(orphan), old: rel(), app: going, want: rel(orphan)},
		"left out when there is none, it is gone":       {user: "gc", now: rel(orphan), old: rel(), want: rel(orphan)},
		"left out when it is of another, it is gone":    {user: "gc", now: rel(orphan), old: rel(forged), app: app, want: rel(orphan)},
		"changed, it is refused":                        {user: "bob", now: rel(forged), old: rel(), app: app, refuse: true},
		"changed by the reconciler, it is refused":      {user: ask.Reconciler, now: rel(forged), old: rel(), app: app, refuse: true},
		"set to another, it is refused":                 {user: "bob", now: rel(forged), old: rel(orphan), app: app, refuse: true},
		"set right, it changes":                         {user: "bob", now: rel(), old: rel(forged), app: app, want: rel()},
		"with another Application, it is refused":       {user: "bob", now: rel(with(another)), old: rel(), app: app, refuse: true},
		"with another owner that is not an Application": {user: "bob", now: rel(with(foreign)), old: rel(), app: app, want: rel(with(foreign))},
		"of another name, it is refused": {
			user: "bob", now: rel(owners(func(ref *metav1.OwnerReference) { ref.Name = "x" })), old: rel(), app: app, refuse: true,
		},
		"of a version that there is not, it is refused": {
			user: "bob", now: rel(owners(func(ref *metav1.OwnerReference) { ref.APIVersion = "shipper.booking.com/v9" })),
			old: rel(), app: app, refuse: true,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			var known []client.Object
			if tc.app != nil {
				known = append(known, tc.app)
			}
			hook := webhookOf(t, ask.Grant(), known...)
			req, a := ask.Update(tc.user, tc.now, tc.old), &response.Response{}
			ask.CheckRefusal(t, hook.Default(t.Context(), req, a), "", "")
			completed := ask.Patched[shipper.Release](t, req, a)
			err := hook.Validate(t.Context(), ask.Update(tc.user, completed, tc.old), a)
			if tc.refuse {
				ask.CheckRefusal(t, err, response.Invalid, refusal)
				return
			}
			ask.CheckRefusal(t, err, "", "")
			if diff := cmp.Diff(tc.want.OwnerReferences, completed.OwnerReferences); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheStampOfReleasesIsKept(t *testing.T) {
	stamper := "ann stamp releases default/" + name
	clusters := shipper.ReleaseClustersAnnotation
	old := rel(ask.ReleaseAnnotated(clusters, "eu-1"))
	bare := old.DeepCopy()
	bare.Annotations, bare.Labels = nil, nil
	tiered := old.DeepCopy()
	tiered.Labels["tier"] = "payments"
	retiered := tiered.DeepCopy()
	retiered.Labels["tier"], retiered.Labels["exempt"] = "none", "yes"
	for sentence, tc := range map[string]struct {
		user   string
		was    *shipper.Release // old, if nil
		now    *shipper.Release
		want   *shipper.Release
		refuse string
	}{
		"left out, it comes back":                                {user: "bob", now: bare, want: old},
		"a label of the Application, left out, comes back":       {user: "bob", was: tiered, now: old, want: tiered},
		"a label of the Application, taken by Shipper, is taken": {user: ask.Reconciler, was: tiered, now: old, want: old},
		"a label of the Application, changed, and another, added, are refused": {
			user: "bob", was: tiered, now: retiered,
			refuse: invalid + `[metadata.labels[exempt]: Forbidden: is written by Shipper; leave it out, ` +
				`metadata.labels[tier]: Forbidden: is written by Shipper; leave it out, or at "payments"]`,
		},
		"changed by the reconciler, it changes": {
			user: ask.Reconciler, now: rel(ask.ReleaseAnnotated(clusters, "eu-2")),
			want: rel(ask.ReleaseAnnotated(clusters, "eu-2")),
		},
		"changed by who may stamp, it changes": {
			user: "ann", now: rel(ask.ReleaseAnnotated(clusters, "eu-2")), want: rel(ask.ReleaseAnnotated(clusters, "eu-2")),
		},
		"changed by a user, it is refused": {
			user: "bob",
			now:  rel(ask.ReleaseAnnotated(clusters, "eu-2"), func(r *shipper.Release) { r.Labels[shipper.AppLabel] = "x" }),
			refuse: invalid + `[metadata.annotations[shipper.booking.com/release.clusters]: Forbidden: is written by Shipper; leave it out, ` +
				`or at "eu-1", metadata.labels[shipper-app]: Forbidden: is written by Shipper; leave it out, or at "super-server"]`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			was := tc.was
			if was == nil {
				was = old
			}
			req, a := ask.Update(tc.user, tc.now, was), &response.Response{}
			err := webhookOf(t, ask.Grant(stamper)).Default(t.Context(), req, a)
			if tc.refuse != "" {
				ask.CheckRefusal(t, err, response.Invalid, tc.refuse)
				err = webhookOf(t, ask.Grant(stamper)).Validate(t.Context(), req, a) // as if it had not been completed
				ask.CheckRefusal(t, err, response.Invalid, tc.refuse)
				return
			}
			ask.CheckRefusal(t, err, "", "")
			if diff := cmp.Diff(tc.want.ObjectMeta, ask.Patched[shipper.Release](t, req, a).ObjectMeta); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOverridesOfReleases(t *testing.T) {
	for sentence, tc := range map[string]struct {
		req  *admission.Request
		want string
	}{
		"are normalised": {ask.Update("dev", rel(overriding(" global/dns,,")), rel()), "global/dns"},
		"that the Application passed on after the block was gone, are taken out": {
			ask.Create(ask.Reconciler, rel(overriding("global/dns,global/gone"))), "global/dns",
		},
		"of gone blocks are taken out of a Release that is moved": {
			ask.Update("dev", rel(ask.TargetStep(1), overriding("global/gone")), rel(overriding("global/gone"))), "",
		},
		"of gone blocks stay in one that is not": {
			ask.Update("dev", rel(ask.ReleaseAnnotated("a", "b"), overriding("global/gone")), rel(overriding("global/gone"))), "global/gone",
		},
		"by hand stay for validation to refuse": {ask.Create("ann", rel(overriding("global/gone"))), "global/gone"},
	} {
		t.Run(sentence, func(t *testing.T) {
			rights := ask.Grant("dev override rolloutblocks global/dns", "ann stamp releases default/"+name)
			dns := ask.Block("global/dns")
			dns.Spec.Enforcement = shipper.RolloutBlockAudit // so that it is not in the way
			a := &response.Response{}
			if err := webhookOf(t, rights, dns).Default(t.Context(), tc.req, a); err != nil {
				t.Fatal(err)
			}
			got := ask.Patched[shipper.Release](t, tc.req, a).Annotations[shipper.RolloutBlockOverrideAnnotation]
			if got != tc.want {
				t.Errorf("override %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWhatDoesNotDecode(t *testing.T) {
	req := ask.Create("dev", rel())
	req.Object.Raw = []byte(`{"spec":{"targetStep":"x"}}`)
	if err := webhookOf(t, ask.Grant()).Default(t.Context(), req, &response.Response{}); err != nil {
		t.Errorf("mutation refused what the schema has better words for: %v", err)
	}
	if err := webhookOf(t, ask.Grant()).Validate(t.Context(), req, &response.Response{}); err == nil {
		t.Error("validation let it pass")
	}
}
