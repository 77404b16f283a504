// SPDX-License-Identifier: Apache-2.0

package approval_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/approval"
	"shipper.dev/shipper/webhook/response"
)

// runs are those that the API server has.
type runs map[string]*shipper.SequenceRun

func (runs) ReleaseNow(context.Context, types.NamespacedName) (*shipper.Release, error) {
	return nil, nil
}

func (r runs) SequenceRunNow(_ context.Context, key types.NamespacedName) (*shipper.SequenceRun, error) {
	if key.Name == "away" {
		return nil, errors.New("no answer")
	}
	return r[key.Name], nil
}

// delivery is a run that cay requested and eve before, whose second approval waits and has ann's.
func delivery(edits ...func(*shipper.SequenceRun)) *shipper.SequenceRun {
	hourAgo := metav1.NewTime(ask.Now.Add(-time.Hour))
	run := &shipper.SequenceRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1", UID: "r"},
		Spec: shipper.SequenceRunSpec{
			Shipyard: "shop", Stage: "production", Sequence: "delivery", Service: "web",
			RequestedBy: shipper.ApprovalUser{Username: "cay"},
		},
		Status: shipper.SequenceRunStatus{Resolved: &shipper.ResolvedRun{
			ServiceAccountName: "shipper-runner", Version: shipper.RunVersion{Name: "nginx", Version: "1.4.2"},
			EarlierRequesters: []string{"eve"}, Stage: shipper.Stage{Name: "production"},
			Sequence: shipper.Sequence{Name: "delivery", Tasks: []shipper.Task{
				{Name: "approval"}, {Name: "approval", Properties: shipper.FreeForm{"approvals": int64(2)}}, {Name: "deployment"},
			}},
		}, Tasks: []shipper.TaskStatus{
			{Name: "approval", Ordinal: 1, State: shipper.TaskFinished, EventID: "e1"},
			{
				Name: "approval", Ordinal: 2, State: shipper.TaskWaiting, EventID: "e2", TriggerTime: &hourAgo,
				Approvals: []shipper.CountedApproval{{By: "ann", Decision: shipper.DecisionApprove}},
			},
		}},
	}
	run.Status.Tasks[1].Subject = shipyard.Subject(run)
	for _, edit := range edits {
		edit(run)
	}
	return run
}

func (r runs) webhook() *approval.Webhook {
	return &approval.Webhook{State: r, Clock: ask.Clock(), Reconciler: ask.Reconciler}
}

// ofRun is an Approval of a task of a run.
func ofRun(run, task string, edits ...func(*shipper.Approval)) *shipper.Approval {
	a := &shipper.Approval{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Spec: shipper.ApprovalSpec{Run: run, Task: task},
	}
	for _, edit := range edits {
		edit(a)
	}
	return a
}

// asks sets a property of the approval that waits.
func asks(name string, value any) func(*shipper.SequenceRun) {
	return func(run *shipper.SequenceRun) {
		run.Status.Resolved.Sequence.Tasks[1].Properties[name] = value
	}
}

func requestedBy(user string) func(*shipper.SequenceRun) {
	return func(run *shipper.SequenceRun) {
		run.Spec.RequestedBy.Username = user
		run.Status.Tasks[1].Subject = shipyard.Subject(run)
	}
}

func TestApprovalsOfRuns(t *testing.T) {
	const invalid = `Approval.shipper.booking.com "a" is invalid: `
	deploying := delivery(func(run *shipper.SequenceRun) {
		run.Status.Tasks[1].State = shipper.TaskFinished
		run.Status.Tasks = append(run.Status.Tasks, shipper.TaskStatus{Name: "deployment", Ordinal: 1, State: shipper.TaskTriggered})
	})
	finished := delivery(func(run *shipper.SequenceRun) {
		run.Status.Conditions = []shipper.Condition{{Type: shipper.RunFinished, Status: "True"}}
	})
	for sentence, tc := range map[string]struct {
		user     string
		run      *shipper.SequenceRun
		approval *shipper.Approval
		decision response.Decision
		message  string
	}{
		"by a user":                       {"bob", delivery(), ofRun("web-1", ""), "", ""},
		"of the task that waits":          {"bob", delivery(), ofRun("web-1", "approval#2"), "", ""},
		"a rejection by who has approved": {"ann", delivery(), ofRun("web-1", "", refusing), "", ""},
		"a rejection by who asked":        {"cay", delivery(), ofRun("web-1", "", refusing), "", ""},
		"by who asked": {
			"cay", delivery(), ofRun("web-1", ""), response.Forbidden, `user "cay" has asked for run web-1: another user has to approve it`,
		},
		"by who asked before": {
			"eve", delivery(), ofRun("web-1", ""), response.Forbidden, `user "eve" has asked for run web-1: another user has to approve it`,
		},
		"of what a ServiceAccount of the namespace asked for": {
			"bob", delivery(requestedBy(account)), ofRun("web-1", ""), response.Forbidden, account + " requested run web-1" +
				strings.ReplaceAll(byAccount, "gate.", ""),
		},
		"of what one asked for before": {
			"bob", delivery(func(run *shipper.SequenceRun) { run.Status.Resolved.EarlierRequesters = []string{account} }), ofRun("web-1", ""),
			response.Forbidden, account + " requested run web-1" + strings.ReplaceAll(byAccount, "gate.", ""),
		},
		"by a ServiceAccount of the namespace": {
			account, delivery(), ofRun("web-1", ""), response.Forbidden, strings.ReplaceAll(accountApproves, "gate.", ""),
		},
		"of what one asked for, where that is allowed": {
			"bob", delivery(requestedBy(account), asks("allowServiceAccounts", true)), ofRun("web-1", ""), "", "",
		},
		"of what one of another namespace asked for": {
			"bob", delivery(requestedBy("system:serviceaccount:ci:bot")), ofRun("web-1", ""), "", "",
		},
		"by who asked, where that is allowed": {"cay", delivery(asks("allowRequester", true)), ofRun("web-1", ""), "", ""},
		"by the account that deploys": {
			"system:serviceaccount:default:shipper-runner", delivery(), ofRun("web-1", ""), response.Forbidden,
			`user "system:serviceaccount:default:shipper-runner" writes what run web-1 does: another user has to approve it`,
		},
		"by Shipper": {
			ask.Reconciler, delivery(), ofRun("web-1", ""), response.Forbidden,
			`user "` + ask.Reconciler + `" writes what run web-1 does: another user has to approve it`,
		},
		"twice by one": {
			"ann", delivery(), ofRun("web-1", ""), response.Invalid,
			invalid + `spec.task: Invalid value: "approval#2": user "ann" has approved task approval#2 of run web-1 already`,
		},
		"of a task that has ended": {
			"bob", delivery(), ofRun("web-1", "approval"), response.Invalid,
			invalid + `spec.task: Invalid value: "approval": run web-1 waits for task approval#2`,
		},
		"while another task is under way": {
			"bob", deploying, ofRun("web-1", ""), response.Invalid,
			invalid + `spec.run: Invalid value: "web-1": run web-1 waits for no approval: task deployment is under way`,
		},
		"of a run that has finished": {
			"bob", finished, ofRun("web-1", ""), response.Invalid,
			invalid + `spec.run: Invalid value: "web-1": run web-1 waits for no approval: it has finished`,
		},
		"of a task that has expired": {
			"bob", delivery(asks("expires", "1h")), ofRun("web-1", ""), response.Invalid,
			invalid + `spec.run: Invalid value: "web-1": run web-1 waits for no approval: task approval#2 expired after 1h0m0s`,
		},
		"of a run that would deploy something else by now": {
			"bob", delivery(func(run *shipper.SequenceRun) { run.Status.Resolved.Version.Version = "1.4.3" }), ofRun("web-1", ""), response.Invalid,
			invalid + `spec.task: Invalid value: "approval#2": run web-1 would deploy something else than when task approval#2 began to wait: ` +
				"abort it",
		},
		"of a run that is not there":           {"bob", delivery(), ofRun("gone", ""), response.Invalid, invalid + `spec.run: Not found: "gone"`},
		"while the API server does not answer": {"bob", delivery(), ofRun("away", ""), response.Unavailable, "no answer"},
	} {
		t.Run(sentence, func(t *testing.T) {
			is, err := admitted(t, runs{"web-1": tc.run}.webhook(), tc.user, tc.approval)
			ask.CheckRefusal(t, err, tc.decision, tc.message)
			if err != nil {
				return
			}
			expected := tc.approval.DeepCopy()
			good(tc.user)(expected)
			if diff := cmp.Diff(expected, is); diff != "" {
				t.Errorf("approval (-want +got):\n%s", diff)
			}
		})
	}
}

// good writes what the webhook writes for a user.
func good(user string) func(*shipper.Approval) {
	return func(a *shipper.Approval) {
		a.Spec.By.Username, a.Spec.Task = user, "approval#2"
		a.Labels = map[string]string{shipper.RunLabel: "web-1", shipper.ShipyardLabel: "shop", shipper.StageLabel: "production"}
		a.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "shipper.booking.com/v1alpha1", Kind: "SequenceRun", Name: "web-1", UID: "r",
		}}
	}
}

// TestApprovalsOfRunsAreNotForged writes them without the mutating webhook.
func TestApprovalsOfRunsAreNotForged(t *testing.T) {
	w := runs{"web-1": delivery()}.webhook()
	if err := w.Validate(t.Context(), ask.Create("bob", ofRun("web-1", "", good("bob"))), &response.Response{}); err != nil {
		t.Errorf("one that is right: %v", err)
	}
	for sentence, forge := range map[string]func(*shipper.Approval){
		"in the name of another":    func(a *shipper.Approval) { a.Spec.By.Username = "ann" },
		"of another task":           func(a *shipper.Approval) { a.Spec.Task = "approval" },
		"of another stage":          func(a *shipper.Approval) { a.Labels[shipper.StageLabel] = "staging" },
		"of another Shipyard":       func(a *shipper.Approval) { a.Labels[shipper.ShipyardLabel] = "x" },
		"found by another run":      func(a *shipper.Approval) { a.Labels[shipper.RunLabel] = "x" },
		"owned by another":          func(a *shipper.Approval) { a.OwnerReferences[0].UID = "x" },
		"with a move of a Release":  func(a *shipper.Approval) { a.Spec.Move = 1 },
		"by one who asked for that": func(a *shipper.Approval) { a.Spec.By.Username = "cay" },
	} {
		t.Run(sentence, func(t *testing.T) {
			err := w.Validate(t.Context(), ask.Create("bob", ofRun("web-1", "", good("bob"), forge)), &response.Response{})
			var refusal *response.Refusal
			if !errors.As(err, &refusal) || refusal.Decision != response.Invalid {
				t.Errorf("it says %v", err)
			}
		})
	}
}
