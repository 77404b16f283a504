// SPDX-License-Identifier: Apache-2.0

package approval_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/approval"
	"shipper.dev/shipper/webhook/response"
)

// releases are those that the API server has.
type releases map[string]*shipper.Release

// SequenceRunNow knows none.
func (releases) SequenceRunNow(context.Context, types.NamespacedName) (*shipper.SequenceRun, error) {
	return nil, nil
}

func (r releases) ReleaseNow(_ context.Context, key types.NamespacedName) (*shipper.Release, error) {
	if key.Name == "away" {
		return nil, errors.New("no answer")
	}
	return r[key.Name], nil
}

// web is a Release that cay has asked for, whose step 0 waits for two approvals and has ann's.
func web(edits ...func(*shipper.Release)) *shipper.Release {
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web-1-0", UID: "u", Labels: map[string]string{shipper.AppLabel: "web"},
		Annotations: map[string]string{
			shipper.ReleaseRequestedByAnnotation: "cay", shipper.ReleaseMovedAnnotation: `{"from":1,"to":0,"count":2}`,
		},
	}}
	rel.Status.Progress = &shipper.ReleaseProgress{
		Move: 2, ConvergedTime: &metav1.Time{}, Approvals: &shipper.ReleaseApprovals{Required: 2, Users: []string{"ann"}},
	}
	for _, edit := range edits {
		edit(rel)
	}
	return rel
}

func enough(rel *shipper.Release) { rel.Status.Progress.Approvals.Required = 1 }

func of(release string, step int32, edits ...func(*shipper.Approval)) *shipper.Approval {
	a := &shipper.Approval{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Spec: shipper.ApprovalSpec{Release: release, Step: &step},
	}
	for _, edit := range edits {
		edit(a)
	}
	return a
}

func refusing(a *shipper.Approval) { a.Spec.Decision = shipper.DecisionReject }

func named(wave int32) func(*shipper.Approval) {
	return func(a *shipper.Approval) { a.Spec.Wave = &wave }
}

func webhook(rel *shipper.Release) *approval.Webhook {
	return &approval.Webhook{State: releases{"web-1-0": rel}, Clock: ask.Clock()}
}

const (
	account   = "system:serviceaccount:default:ci"
	byAccount = ". A user with the role edit may act as this ServiceAccount, and could approve their own change: request it as a user, " +
		"or as a ServiceAccount of another namespace, or set gate.allowServiceAccounts: true"
	accountApproves = "a user with the role edit may act as " + account + ", a ServiceAccount of this namespace, and could approve their " +
		"own change: approve as a user, or set gate.allowServiceAccounts: true"
)

func askedBy(user string) func(*shipper.Release) {
	return func(rel *shipper.Release) { rel.Annotations[shipper.ReleaseRequestedByAnnotation] = user }
}

func ofRunOf(user string) func(*shipper.Release) {
	return func(rel *shipper.Release) {
		rel.Annotations[shipper.ReleaseRunAnnotation] = `{"namespace":"default","run":"delivery","uid":"r","requesters":["` + user + `"]}`
	}
}

func overriddenBy(user string) func(*shipper.Release) {
	return func(rel *shipper.Release) {
		rel.Spec.Overrides = []shipper.ReleaseOverride{{Name: "shop/limits", RequestedBy: user}}
	}
}

func allowing(rel *shipper.Release) {
	rel.Spec.Environment.Strategy = &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{
		{Gate: &shipper.StepGate{Approvals: 2, AllowServiceAccounts: true}}, {},
	}}
}

// waveOf is a Release at the last step of a wave, whose tasks have these approvals.
func waveOf(tasks *shipper.WaveTasks, edits ...func(*shipper.Release)) *shipper.Release {
	rel := web(edits...)
	rel.Annotations[shipper.ReleaseMovedAnnotation] = `{"from":1,"to":0,"count":2}`
	rel.Spec.Environment.Strategy = &shipper.RolloutStrategy{
		Steps: []shipper.RolloutStrategyStep{{Name: "full on"}}, Waves: []shipper.Wave{{Name: "canary", AfterTasks: tasks}, {Name: "rest"}},
	}
	return rel
}

// before is the task of the beginning of a wave.
func before(a *shipper.Approval) { a.Spec.Task = shipper.ApprovalBefore }

// beginning is a Release whose first wave waits for approvals to begin, and has ann's.
func beginning(tasks *shipper.WaveTasks, edits ...func(*shipper.Release)) *shipper.Release {
	rel := waveOf(&shipper.WaveTasks{Approvals: 2})
	rel.Spec.Environment.Strategy.Waves[0].BeforeTasks = tasks
	rel.Status.Progress.ConvergedTime, rel.Status.Progress.BeforeApprovals = nil, rel.Status.Progress.Approvals
	rel.Status.Progress.Approvals = &shipper.ReleaseApprovals{Required: 2}
	for _, edit := range edits {
		edit(rel)
	}
	return rel
}

func TestApprovals(t *testing.T) {
	const invalid = `Approval.shipper.booking.com "a" is invalid: `
	moving := web()
	moving.Status.Progress.ConvergedTime = nil
	moving.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseAdvancing, Message: "capacity in us-east-1 is awaited"}}
	moved := web()
	moved.Status.Progress.Move = 1
	none := web()
	none.Status.Progress.Approvals = nil
	two := &shipper.WaveTasks{Approvals: 2}
	converged := func(rel *shipper.Release) { rel.Status.Progress.ConvergedTime = &metav1.Time{} }
	const requested = `user "cay" has asked for Release web-1-0: another user has to approve it`
	for sentence, tc := range map[string]struct {
		user     string
		rel      *shipper.Release
		approval *shipper.Approval
		decision response.Decision
		message  string
	}{
		"by a user who may":               {"bob", web(), of("web-1-0", 0), "", ""},
		"a rejection by one":              {"bob", web(), of("web-1-0", 0, refusing), "", ""},
		"a rejection by who asked":        {"cay", web(), of("web-1-0", 0, refusing), "", ""},
		"a rejection by who has approved": {"ann", web(), of("web-1-0", 0, refusing), "", ""},
		"by who asked": {
			"cay", web(), of("web-1-0", 0), response.Forbidden, `user "cay" has asked for Release web-1-0: another user has to approve it`,
		},
		"by who wrote an override of it": {
			"bob", web(overriddenBy("bob")), of("web-1-0", 0), response.Forbidden,
			`user "bob" has written ResourceOverride shop/limits, of which Release web-1-0 has a copy: another user has to approve it`,
		},
		"with an override of another": {"bob", web(overriddenBy("eve")), of("web-1-0", 0), "", ""},
		"by who wrote an override of it, though another wrote it last": {
			"bob", web(overriddenBy("eve"), func(rel *shipper.Release) { rel.Spec.Overrides[0].EarlierWriters = []string{"dan", "bob"} }),
			of("web-1-0", 0), response.Forbidden,
			`user "bob" has written ResourceOverride shop/limits, of which Release web-1-0 has a copy: another user has to approve it`,
		},
		"of what a ServiceAccount of the namespace overrides": {
			"bob", web(overriddenBy(account)), of("web-1-0", 0), response.Forbidden, account + " requested Release web-1-0" + byAccount,
		},
		"by who asked for the run that made it": {
			"bob", web(func(rel *shipper.Release) {
				rel.Annotations[shipper.ReleaseRunAnnotation] = `{"namespace":"shop","run":"delivery","uid":"r","requesters":["bob"]}`
			}), of("web-1-0", 0), response.Forbidden, `user "bob" has asked for Release web-1-0: another user has to approve it`,
		},
		"of what a ServiceAccount of the namespace asked for": {
			"bob", web(askedBy(account)), of("web-1-0", 0), response.Forbidden, account + " requested Release web-1-0" + byAccount,
		},
		"of it, by the ServiceAccount": {
			account, web(askedBy(account), allowing), of("web-1-0", 0), response.Forbidden,
			`user "` + account + `" has asked for Release web-1-0: another user has to approve it`,
		},
		"of it, where the gate allows it": {"bob", web(askedBy(account), allowing), of("web-1-0", 0), "", ""},
		"a rejection of it":               {"bob", web(askedBy(account)), of("web-1-0", 0, refusing), "", ""},
		"of what one of another namespace asked for": {
			"bob", web(askedBy("system:serviceaccount:argocd:sync")), of("web-1-0", 0), "", "",
		},
		"of what the runner wrote for a run of a user": {
			"bob", web(askedBy("system:serviceaccount:default:shipper-runner"), ofRunOf("eve")), of("web-1-0", 0), "", "",
		},
		"of what the runner wrote for a run of a ServiceAccount": {
			"bob", web(askedBy("system:serviceaccount:default:shipper-runner"), ofRunOf(account)), of("web-1-0", 0), response.Forbidden,
			account + " requested Release web-1-0" + byAccount,
		},
		"by a ServiceAccount of the namespace": {
			account, web(), of("web-1-0", 0), response.Forbidden, accountApproves,
		},
		"by one, where the gate allows it": {account, web(allowing), of("web-1-0", 0), "", ""},
		"twice by one": {
			"ann", web(), of("web-1-0", 0), response.Invalid,
			invalid + `spec.step: Invalid value: 0: user "ann" has approved step 0 of Release web-1-0 already`,
		},
		"of the end of a wave": {"bob", waveOf(&shipper.WaveTasks{Approvals: 2}), of("web-1-0", 0), "", ""},
		"of it, by its index":  {"bob", waveOf(&shipper.WaveTasks{Approvals: 2}), of("web-1-0", 0, named(0)), "", ""},
		"of another wave, by its index": {
			"bob", waveOf(&shipper.WaveTasks{Approvals: 2}), of("web-1-0", 0, named(1)), response.Invalid,
			invalid + "spec.wave: Invalid value: 1: Release web-1-0 is in wave 0 (canary)",
		},
		"a rejection of another wave": {
			"bob", waveOf(&shipper.WaveTasks{Approvals: 2}), of("web-1-0", 0, named(1), refusing), response.Invalid,
			invalid + "spec.wave: Invalid value: 1: Release web-1-0 is in wave 0 (canary)",
		},
		"of a wave, where there are none": {
			"bob", web(), of("web-1-0", 0, named(0)), response.Invalid,
			invalid + "spec.wave: Invalid value: 0: Release web-1-0 has no waves: leave it out",
		},
		"of it, by who asked": {
			"cay", waveOf(&shipper.WaveTasks{Approvals: 2}), of("web-1-0", 0), response.Forbidden,
			`user "cay" has asked for Release web-1-0: another user has to approve it`,
		},
		"of it, twice by one": {
			"ann", waveOf(&shipper.WaveTasks{Approvals: 2}), of("web-1-0", 0), response.Invalid,
			invalid + `spec.step: Invalid value: 0: user "ann" has approved step 0 of Release web-1-0 already`,
		},
		"of it, by a ServiceAccount of the namespace": {
			account, waveOf(&shipper.WaveTasks{Approvals: 2}), of("web-1-0", 0), response.Forbidden,
			strings.Replace(accountApproves, "gate.", "afterTasks.", 1),
		},
		"of it, by one that the wave allows": {
			account, waveOf(&shipper.WaveTasks{Approvals: 2, AllowServiceAccounts: true}), of("web-1-0", 0), "", "",
		},
		"of the beginning of a wave":            {"bob", beginning(two), of("web-1-0", 0, before), "", ""},
		"of it, by the index of the wave":       {"bob", beginning(two), of("web-1-0", 0, before, named(0)), "", ""},
		"of it, while some of it have begun":    {"bob", beginning(two, converged), of("web-1-0", 0, before), "", ""},
		"a refusal of the beginning of a wave":  {"ann", beginning(two), of("web-1-0", 0, before, refusing), "", ""},
		"of the beginning, by who asked for it": {"cay", beginning(two), of("web-1-0", 0, before), response.Forbidden, requested},
		"of the step, while the wave waits to begin": {
			"bob", beginning(two), of("web-1-0", 0), response.Invalid,
			invalid + "spec.step: Invalid value: 0: step 0 of Release web-1-0 is not waiting for approval; to approve the beginning of " +
				"the wave, set task: Before",
		},
		"of the beginning of another wave": {
			"bob", beginning(two), of("web-1-0", 0, before, named(1)), response.Invalid,
			invalid + "spec.wave: Invalid value: 1: Release web-1-0 is in wave 0 (canary)",
		},
		"of the beginning, twice by one": {
			"ann", beginning(two), of("web-1-0", 0, before), response.Invalid,
			invalid + `spec.step: Invalid value: 0: user "ann" has approved the beginning of wave canary of Release web-1-0 already`,
		},
		"of the beginning, when enough have approved": {
			"bob", beginning(two, func(rel *shipper.Release) { rel.Status.Progress.BeforeApprovals.Required = 1 }), of("web-1-0", 0, before),
			response.Invalid,
			invalid + "spec.step: Invalid value: 0: the beginning of wave canary of Release web-1-0 has the approvals that it needs",
		},
		"of the beginning, by figures of an earlier move": {
			"bob", beginning(two, func(rel *shipper.Release) { rel.Status.Progress.Move = 1 }), of("web-1-0", 0, before), response.Invalid,
			invalid + "spec.step: Invalid value: 0: the beginning of wave canary of Release web-1-0 is not waiting for approval",
		},
		"of the beginning, by a ServiceAccount of the namespace": {
			account, beginning(two), of("web-1-0", 0, before), response.Forbidden, strings.Replace(accountApproves, "gate.", "beforeTasks.", 1),
		},
		"of it, by one that the end of the wave allows": {
			account, beginning(two, func(rel *shipper.Release) {
				rel.Spec.Environment.Strategy.Waves[0].AfterTasks.AllowServiceAccounts = true
			}), of("web-1-0", 0, before), response.Forbidden, strings.Replace(accountApproves, "gate.", "beforeTasks.", 1),
		},
		"of it, by one that it allows": {
			account, beginning(&shipper.WaveTasks{Approvals: 2, AllowServiceAccounts: true}), of("web-1-0", 0, before), "", "",
		},
		"of the beginning of a wave that waits for nothing": {
			"bob", waveOf(&shipper.WaveTasks{Approvals: 2}), of("web-1-0", 0, before), response.Invalid,
			invalid + `spec.task: Invalid value: "Before": wave canary begins without approvals: leave it out to approve its step`,
		},
		"of the beginning, without waves": {
			"bob", web(), of("web-1-0", 0, before), response.Invalid,
			invalid + `spec.task: Invalid value: "Before": Release web-1-0 has no waves: leave it out to approve its step`,
		},
		"of a task that there is not": {
			"bob", beginning(two), of("web-1-0", 0, func(a *shipper.Approval) { a.Spec.Task = "After" }), response.Invalid,
			invalid + `spec.task: Unsupported value: "After": supported values: "Before"`,
		},
		"when enough have approved": {
			"bob", web(enough), of("web-1-0", 0), response.Invalid,
			invalid + "spec.step: Invalid value: 0: step 0 of Release web-1-0 has the approvals that it needs: raise targetStep",
		},
		"a rejection when enough have approved": {"bob", web(enough), of("web-1-0", 0, refusing), "", ""},
		"rejected twice by one": {
			"bob", web(func(rel *shipper.Release) { rel.Status.Progress.Approvals.RejectedBy = "bob" }), of("web-1-0", 0, refusing),
			response.Invalid, invalid + `spec.step: Invalid value: 0: user "bob" has rejected step 0 of Release web-1-0 already`,
		},
		"of another step": {
			"bob", web(), of("web-1-0", 1), response.Invalid,
			invalid + "spec.step: Invalid value: 1: Release web-1-0 is at step 0",
		},
		"of a step that is not there yet": {
			"bob", moving, of("web-1-0", 0), response.Invalid,
			invalid + "spec.step: Invalid value: 0: step 0 of Release web-1-0 is not waiting for approval: capacity in us-east-1 is awaited",
		},
		"of a position that is no more": {
			"bob", moved, of("web-1-0", 0), response.Invalid,
			invalid + "spec.step: Invalid value: 0: step 0 of Release web-1-0 is not waiting for approval",
		},
		"where none is asked for": {
			"bob", none, of("web-1-0", 0), response.Invalid,
			invalid + "spec.step: Invalid value: 0: step 0 of Release web-1-0 is not waiting for approval",
		},
		"of a Release that is not there":       {"bob", web(), of("gone", 0), response.Invalid, invalid + `spec.release: Not found: "gone"`},
		"while the API server does not answer": {"bob", web(), of("away", 0), response.Unavailable, "no answer"},
	} {
		t.Run(sentence, func(t *testing.T) {
			is, err := admitted(t, webhook(tc.rel), tc.user, tc.approval)
			ask.CheckRefusal(t, err, tc.decision, tc.message)
			if err != nil {
				return
			}
			expected := tc.approval.DeepCopy()
			expected.Labels = map[string]string{shipper.AppLabel: "web", shipper.ReleaseLabel: "web-1-0"}
			expected.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: "shipper.booking.com/v1alpha1", Kind: "Release", Name: "web-1-0", UID: "u",
			}}
			if s := tc.rel.Spec.Environment.Strategy; s != nil && len(s.Waves) > 0 {
				expected.Spec.Wave = new(int32)
			}
			expected.Spec.By, expected.Spec.Move = shipper.ApprovalUser{Username: tc.user}, 2
			if diff := cmp.Diff(expected, is); diff != "" {
				t.Errorf("approval (-want +got):\n%s", diff)
			}
		})
	}
}

// admitted is an Approval as the mutating webhook completes it, after the other has validated that.
func admitted(t *testing.T, w *approval.Webhook, user string, sent *shipper.Approval) (*shipper.Approval, error) {
	t.Helper()
	req, a := ask.Create(user, sent), &response.Response{}
	if err := w.Default(t.Context(), req, a); err != nil {
		return nil, err
	}
	is := ask.Patched[shipper.Approval](t, req, a)
	return is, w.Validate(t.Context(), ask.Create(user, is), &response.Response{})
}

// TestApprovalsAreNotForged writes them without the mutating webhook.
func TestApprovalsAreNotForged(t *testing.T) {
	good := func(a *shipper.Approval) {
		a.Spec.By.Username, a.Spec.Move = "bob", 2
		a.Labels = map[string]string{shipper.AppLabel: "web", shipper.ReleaseLabel: "web-1-0"}
		a.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "shipper.booking.com/v1alpha1", Kind: "Release", Name: "web-1-0", UID: "u",
		}}
	}
	if err := webhook(web()).Validate(t.Context(), ask.Create("bob", of("web-1-0", 0, good)), &response.Response{}); err != nil {
		t.Errorf("one that is right: %v", err)
	}
	for sentence, forge := range map[string]func(*shipper.Approval){
		"in the name of another":   func(a *shipper.Approval) { a.Spec.By.Username = "ann" },
		"of another uid":           func(a *shipper.Approval) { a.Spec.By.UID = "7" },
		"for another position":     func(a *shipper.Approval) { a.Spec.Move = 3 },
		"of another Application":   func(a *shipper.Approval) { a.Labels[shipper.AppLabel] = "x" },
		"owned by none":            func(a *shipper.Approval) { a.OwnerReferences = nil },
		"with another event":       func(a *shipper.Approval) { a.Spec.EventID = "e" },
		"with another subject":     func(a *shipper.Approval) { a.Spec.Subject = "s" },
		"at another time":          func(a *shipper.Approval) { a.Spec.Time = &metav1.Time{Time: ask.Now} },
		"found by another Release": func(a *shipper.Approval) { a.Labels[shipper.ReleaseLabel] = "x" },
	} {
		t.Run(sentence, func(t *testing.T) {
			err := webhook(web()).Validate(t.Context(), ask.Create("bob", of("web-1-0", 0, good, forge)), &response.Response{})
			var refusal *response.Refusal
			if !errors.As(err, &refusal) || refusal.Decision != response.Invalid {
				t.Errorf("it says %v", err)
			}
		})
	}
}
