// SPDX-License-Identifier: Apache-2.0

package target_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
	"shipper.dev/shipper/webhook/target"
)

const (
	name    = "super-server-8c60a3ae-0"
	invalid = `CapacityTarget.shipper.booking.com "` + name + `" is invalid: `
)

func rel(edits ...func(*shipper.Release)) *shipper.Release {
	return ask.Release(ask.Application(), nil, edits...)
}

func overriding(value string) func(*shipper.Release) {
	return ask.ReleaseAnnotated(shipper.RolloutBlockOverrideAnnotation, value)
}

// capacity is the target of rel at percent.
func capacity(percent int32, edits ...func(*shipper.CapacityTarget)) *shipper.CapacityTarget {
	ct := &shipper.CapacityTarget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "shipper.booking.com/v1alpha1", Kind: "Release", Name: name, UID: name + "-uid",
			}},
		},
		Spec: shipper.CapacityTargetSpec{Clusters: []shipper.ClusterCapacityTarget{{Name: "eu-1", Percent: percent}}},
	}
	for _, edit := range edits {
		edit(ct)
	}
	return ct
}

const digest = shipper.ReleaseChartDigestAnnotation

func labelled(key, value string) func(*shipper.CapacityTarget) {
	return func(ct *shipper.CapacityTarget) { ct.Labels = map[string]string{key: value} }
}

func annotated(key, value string) func(*shipper.CapacityTarget) {
	return func(ct *shipper.CapacityTarget) { ct.Annotations = map[string]string{key: value} }
}

func blocked(command string) string {
	return "rollouts blocked by: global/dns (DNS issues, troubleshooting in progress; jdoe, 12m ago). To override: " + command +
		" (the verb override on these rolloutblocks is needed)"
}

func TestTargetsAreJudged(t *testing.T) {
	now := metav1.Time{Time: ask.Now}
	dns := ask.Block("global/dns")
	going := rel(func(r *shipper.Release) { r.DeletionTimestamp = &now })
	next := func(edits ...func(*shipper.Release)) *shipper.Release {
		return ask.Release(ask.Application(ask.Version("0.0.2")), []*shipper.Release{rel()}, edits...)
	}
	goingNext := next(overriding("global/dns"), func(r *shipper.Release) { r.DeletionTimestamp = &now })
	command := "kubectl annotate rel " + name + " shipper.booking.com/rollout-block.override=global/dns -n default"
	const others = "spec of CapacityTargets is written by Shipper only, and would be written again: " +
		"change targetStep of the Release, or the strategy of the Application instead"
	orphan := func(ct *shipper.CapacityTarget) { ct.OwnerReferences = nil }
	forged := func(ct *shipper.CapacityTarget) { ct.OwnerReferences[0].UID = "forged" }
	const owned = invalid + "metadata.ownerReferences: Forbidden: the reference to Release is written by Shipper; " +
		"leave it at " + name + " with uid " + name + "-uid"
	for sentence, tc := range map[string]struct {
		req      *admission.Request
		known    []client.Object
		decision response.Decision
		message  string
		warned   []string
	}{
		"the reconciler creates": {req: ask.Create(ask.Reconciler, capacity(0)), known: []client.Object{rel()}},
		"others do not create": {
			req: ask.Create("dev", capacity(0)), known: []client.Object{rel()}, decision: response.Forbidden, message: others,
		},
		"who may stamp creates": {req: ask.Create("ann", capacity(0)), known: []client.Object{rel()}},
		"who may stamp creates for its Release only": {
			req: ask.Create("ann", capacity(0, forged)), known: []client.Object{rel()}, decision: response.Invalid,
			message: invalid + `metadata.ownerReferences: Required value: must refer to Release ` + name + ` with uid ` + name + `-uid`,
		},
		"a block stops who may stamp": {
			req: ask.Create("ann", capacity(0)), known: []client.Object{rel(), dns}, decision: response.Blocked, message: blocked(command),
		},
		"who may stamp does not change": {
			req: ask.Update("ann", capacity(50), capacity(0)), known: []client.Object{rel()}, decision: response.Forbidden,
			message: others,
		},
		"the reconciler changes": {
			req: ask.Update(ask.Reconciler, capacity(50), capacity(0)), known: []client.Object{rel()},
		},
		"others do not change": {
			req: ask.Update("dev", capacity(50), capacity(0)), known: []client.Object{rel()}, decision: response.Forbidden,
			message: others,
		},
		"others change metadata": {
			req:   ask.Update("dev", capacity(50, func(ct *shipper.CapacityTarget) { ct.Finalizers = []string{"x/y"} }), capacity(50)),
			known: []client.Object{rel(), dns},
		},
		"others annotate for themselves": {
			req:   ask.Update("dev", capacity(50, annotated("mine", "x")), capacity(50, annotated("theirs", "x"))),
			known: []client.Object{rel(), dns},
		},
		"others do not label": {
			req:   ask.Update("dev", capacity(50, labelled("shipper-app", "other")), capacity(50, labelled("shipper-release", name))),
			known: []client.Object{rel()}, decision: response.Invalid,
			message: `CapacityTarget.shipper.booking.com "` + name + `" is invalid: [metadata.labels[shipper-app]: Forbidden: ` +
				`is written by Shipper; leave it out, metadata.labels[shipper-release]: Required value: is written by Shipper; ` +
				`leave it at "` + name + `"]`,
		},
		"others do not annotate for Shipper": {
			req:   ask.Update("dev", capacity(50, annotated(digest, "b")), capacity(50, annotated(digest, "a"))),
			known: []client.Object{rel()}, decision: response.Invalid,
			message: invalid + "metadata.annotations[" + digest + `]: Forbidden: is written by Shipper; leave it out, or at "a"`,
		},
		"who may stamp labels": {
			req:   ask.Update("ann", capacity(50, labelled("shipper-app", "other")), capacity(50)),
			known: []client.Object{rel()},
		},
		"the reconciler labels": {
			req: ask.Update(ask.Reconciler, capacity(50, labelled("shipper-app", "other")), capacity(50)), known: []client.Object{rel()},
		},
		"others do not take the owner away": {
			req: ask.Update("dev", capacity(50, orphan), capacity(50)), known: []client.Object{rel()}, decision: response.Invalid,
			message: owned,
		},
		"others do not give it another owner": {
			req: ask.Update("dev", capacity(50, forged), capacity(50)), known: []client.Object{rel()}, decision: response.Invalid,
			message: owned,
		},
		"nor does the reconciler": {
			req: ask.Update(ask.Reconciler, capacity(50, forged), capacity(50)), known: []client.Object{rel()}, decision: response.Invalid,
			message: owned,
		},
		"an owner that is going is taken away": {
			req: ask.Update("gc", capacity(50, orphan), capacity(50)), known: []client.Object{going},
		},
		"an owner that is gone is taken away": {req: ask.Update("gc", capacity(50, orphan), capacity(50))},
		"an owner that was wrong is set right": {
			req: ask.Update("dev", capacity(50), capacity(50, forged)), known: []client.Object{rel()},
		},
		"other users delete, with a warning": {
			req: ask.Delete("dev", capacity(0)), known: []client.Object{rel()},
			warned: []string{"Release " + name + " still exists: Shipper makes this CapacityTarget again"},
		},
		"a target of no Release": {
			req: ask.Create(ask.Reconciler, capacity(0)), decision: response.Invalid,
			message: invalid + `metadata.name: Not found: "` + name + ` (there is no Release of this name)"`,
		},
		"a target that its Release does not own": {
			req: ask.Create(ask.Reconciler, capacity(0, orphan)), known: []client.Object{rel()}, decision: response.Invalid,
			message: invalid + `metadata.ownerReferences: Required value: must refer to Release ` + name + ` with uid ` + name + `-uid`,
		},
		"a block stops creation": {
			req: ask.Create(ask.Reconciler, capacity(0)), known: []client.Object{rel(), dns}, decision: response.Blocked,
			message: blocked(command),
		},
		"a block stops a change": {
			req: ask.Update(ask.Reconciler, capacity(50), capacity(0)), known: []client.Object{rel(), dns},
			decision: response.Blocked,
			message:  blocked(command),
		},
		"a block stops deletion": {
			req: ask.Delete("dev", capacity(0)), known: []client.Object{rel(), dns}, decision: response.Blocked,
			message: blocked(command),
		},
		"an override of the Release lets a change through": {
			req:   ask.Update(ask.Reconciler, capacity(50), capacity(0)),
			known: []client.Object{rel(overriding("global/dns")), dns},
		},
		"an override of the newest Release lets its predecessor's target change": {
			req:   ask.Update(ask.Reconciler, capacity(50), capacity(0)),
			known: []client.Object{rel(), next(overriding("global/dns")), dns},
		},
		"an override of a Release that is going counts no more": {
			req: ask.Update(ask.Reconciler, capacity(50), capacity(0)), known: []client.Object{rel(), goingNext, dns},
			decision: response.Blocked, message: blocked(command),
		},
		"the newest Release is the one to annotate": {
			req: ask.Update(ask.Reconciler, capacity(50), capacity(0)), known: []client.Object{rel(), next(), dns},
			decision: response.Blocked,
			message:  blocked("kubectl annotate rel " + next().Name + " shipper.booking.com/rollout-block.override=global/dns -n default"),
		},
		"a target that outlives its Release is changed": {
			req: ask.Update(ask.Reconciler, capacity(0), capacity(50)), known: []client.Object{dns},
		},
		"under a block, a target goes with its Release": {req: ask.Delete("gc", capacity(0)), known: []client.Object{dns}},
		"under a block, a target goes when its Release is going": {
			req: ask.Delete("gc", capacity(0)), known: []client.Object{going, dns},
		},
		"a block stops deletion, whatever uid the Release has": {
			req:      ask.Delete("gc", capacity(0)),
			known:    []client.Object{rel(func(r *shipper.Release) { r.UID = "another" }), dns},
			decision: response.Blocked, message: blocked(command),
		},
		"a block stops deletion of a target that refers to no Release": {
			req: ask.Delete("gc", capacity(0, orphan)), known: []client.Object{rel(), dns},
			decision: response.Blocked, message: blocked(command),
		},
		"under a block, a target goes with its namespace": {
			req: ask.Delete("gc", capacity(0)), known: []client.Object{rel(), dns, ask.GoingNamespace("default")},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := ask.Know(t, ask.Grant("ann stamp capacitytargets default/"+name), tc.known...)
			hook := &target.Webhook{Kind: target.Capacity, BlockCheck: w.BlockCheck, State: w.State, Guard: w.Guard}
			a := &response.Response{}
			ask.CheckRefusal(t, hook.Validate(t.Context(), tc.req, a), tc.decision, tc.message)
			if diff := cmp.Diff(tc.warned, a.Warnings()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// Checks change no workload: blocks do not stop them, and what users do to them is refused all the same.
func TestCheckTargetsAreNotBlocked(t *testing.T) {
	run := func(n int64) *shipper.CheckTarget {
		return &shipper.CheckTarget{ObjectMeta: capacity(0).ObjectMeta, Spec: shipper.CheckTargetSpec{Run: n}}
	}
	orphan := run(1)
	orphan.OwnerReferences = nil
	const others = "spec of CheckTargets is written by Shipper only, and would be written again: change the Check or the strategy of the " +
		"Application, or annotate the Release with shipper.booking.com/release.checks.retry instead"
	for sentence, tc := range map[string]struct {
		req      *admission.Request
		decision response.Decision
		message  string
		warned   []string
	}{
		"the reconciler begins a run":  {req: ask.Create(ask.Reconciler, run(1))},
		"the reconciler begins others": {req: ask.Update(ask.Reconciler, run(2), run(1))},
		"others begin none":            {req: ask.Create("dev", run(1)), decision: response.Forbidden, message: others},
		"others change none":           {req: ask.Update("dev", run(2), run(1)), decision: response.Forbidden, message: others},
		"who may stamp restores one":   {req: ask.Create("ann", run(1))},
		"one that its Release does not own": {
			req: ask.Create(ask.Reconciler, orphan), decision: response.Invalid, message: `CheckTarget.shipper.booking.com "` + name +
				`" is invalid: metadata.ownerReferences: Required value: must refer to Release ` + name + ` with uid ` + name + `-uid`,
		},
		"others delete, with a warning": {
			req: ask.Delete("dev", run(1)), warned: []string{"Release " + name + " still exists: Shipper makes this CheckTarget again"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := ask.Know(t, ask.Grant("ann stamp checktargets default/"+name), rel(), ask.Block("global/dns"))
			hook := &target.Webhook{Kind: target.Check, BlockCheck: w.BlockCheck, State: w.State, Guard: w.Guard}
			a := &response.Response{}
			ask.CheckRefusal(t, hook.Validate(t.Context(), tc.req, a), tc.decision, tc.message)
			if diff := cmp.Diff(tc.warned, a.Warnings()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRightsThatCannotBeAsked(t *testing.T) {
	rights := ask.Grant()
	rights.Err = errors.New("API server is away")
	w := ask.Know(t, rights, rel())
	hook := &target.Webhook{Kind: target.Capacity, BlockCheck: w.BlockCheck, State: w.State, Guard: w.Guard}
	err := hook.Validate(t.Context(), ask.Create("ann", capacity(0)), &response.Response{})
	ask.CheckRefusal(t, err, response.Unavailable, "API server is away")
}

func TestWhatDoesNotDecode(t *testing.T) {
	req := ask.Create("dev", capacity(0))
	req.Object.Raw = []byte(`{"metadata":7}`)
	w := ask.Know(t, ask.Grant())
	hook := &target.Webhook{Kind: target.Capacity, BlockCheck: w.BlockCheck, State: w.State, Guard: w.Guard}
	if err := hook.Validate(t.Context(), req, &response.Response{}); err == nil {
		t.Error("it passed")
	}
}
