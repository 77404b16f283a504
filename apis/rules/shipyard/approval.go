// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/rights"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// StampApproval completes an Approval of a run: the task that waits, unless it names one, and by what it is found. The policy reads the
// Shipyard and the stage, on which its author needs the verb approve, from the labels.
func StampApproval(a *shipper.Approval, run *shipper.SequenceRun, now time.Time) {
	a.Spec.Move = 0
	if task, _, why := Awaited(run, now); why == "" && a.Spec.Task == "" {
		a.Spec.Task = NameOf(task)
	}
	if a.Labels == nil {
		a.Labels = map[string]string{}
	}
	maps.Copy(a.Labels, approvalLabels(run))
	a.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: shipper.GroupVersion.String(), Kind: "SequenceRun", Name: run.Name, UID: run.UID,
	}}
}

func approvalLabels(run *shipper.SequenceRun) map[string]string {
	return map[string]string{shipper.RunLabel: run.Name, shipper.ShipyardLabel: run.Spec.Shipyard, shipper.StageLabel: run.Spec.Stage}
}

// JudgeApproval is why an Approval does not count for a run; nil if it does. The webhook refuses its creation with it, and the reconciler
// counts by it. Whether its author has the right, on the stage in its labels, is held by the policy.
func JudgeApproval(a *shipper.Approval, run *shipper.SequenceRun, now time.Time) *Refusal {
	if !a.CreationTimestamp.IsZero() {
		now = a.CreationTimestamp.Time
	}
	if !isOf(a, run) {
		return invalid(field.Forbidden(field.NewPath("metadata"), "labels or owner are not those of run "+run.Name+": leave them out"))
	}
	user, rejects := a.Spec.By.Username, a.Spec.Decision == shipper.DecisionReject
	task, asks, why := Awaited(run, now)
	switch {
	case run.Status.Resolved != nil && user == Runner(run):
		return forbidden(fmt.Sprintf("user %q writes what run %s does: another user has to approve it", user, run.Name))
	case why != "":
		return invalid(field.Invalid(specPath.Child("run"), run.Name, fmt.Sprintf("run %s waits for no approval: %s", run.Name, why)))
	case !rejects && !asks.AllowRequester && slices.Contains(Requesters(run), user):
		return forbidden(fmt.Sprintf("user %q has asked for run %s: another user has to approve it", user, run.Name))
	}
	if why := byAccount(run, user, asks); !rejects && why != "" {
		return forbidden(why)
	}
	name := NameOf(task)
	has := func(c shipper.CountedApproval) bool { return c.By == user }
	switch {
	case a.Spec.Task != name:
		why = fmt.Sprintf("run %s waits for task %s", run.Name, name)
	case !a.CreationTimestamp.IsZero() && a.CreationTimestamp.Before(task.TriggerTime):
		why = fmt.Sprintf("it was created before task %s of run %s waited, at %s: delete it, and create another", name, run.Name,
			task.TriggerTime.UTC().Format(time.RFC3339))
	case task.Subject != Subject(run):
		why = fmt.Sprintf("run %s would deploy something else than when task %s began to wait: abort it", run.Name, name)
	case !rejects && slices.ContainsFunc(task.Approvals, has):
		why = fmt.Sprintf("user %q has approved task %s of run %s already", user, name, run.Name)
	}
	if why == "" {
		return nil
	}
	return invalid(field.Invalid(specPath.Child("task"), a.Spec.Task, why))
}

// byAccount says why an Approval does not count because a ServiceAccount of the namespace requested the run, or approves it; empty if
// neither does, or the task allows it. Users who may edit there may act as it.
func byAccount(run *shipper.SequenceRun, user string, asks Consent) string {
	if asks.AllowServiceAccounts {
		return ""
	}
	for _, name := range Requesters(run) {
		if rights.IsServiceAccountOf(name, run.Namespace) {
			return rights.AccountRequester("run "+run.Name, name, allowServiceAccounts)
		}
	}
	if rights.IsServiceAccountOf(user, run.Namespace) {
		return rights.AccountApprover(user, allowServiceAccounts)
	}
	return ""
}

// isOf reports whether an Approval has an author, and the owner and the labels of a run: an earlier run may have had its name.
func isOf(a *shipper.Approval, run *shipper.SequenceRun) bool {
	for key, value := range approvalLabels(run) {
		if a.Labels[key] != value {
			return false
		}
	}
	return a.Spec.By.Username != "" && a.DeletionTimestamp.IsZero() && stamp.OwnedBy(a, run)
}

// RecordApprovals writes into the status of Approvals, the oldest first, whether they count for a run as it is stored, or why not.
func RecordApprovals(all []shipper.Approval, run *shipper.SequenceRun, now metav1.Time) {
	run = run.DeepCopy()
	for i := range all {
		a := &all[i]
		is := shipper.Condition{Type: shipper.ApprovalCounted, Status: corev1.ConditionTrue}
		if refusal := JudgeApproval(a, run, now.Time); refusal != nil {
			is.Status, is.Reason, is.Message = corev1.ConditionFalse, shipper.ApprovalNotCounted, shorten(refusal.Error())
		} else {
			task := UnderWay(run)
			a.Status.EventID, a.Status.Subject = task.EventID, task.Subject
			task.Approvals = append(task.Approvals, countedApproval(a))
		}
		a.Status.Conditions = shipper.SetCondition(nil, is, now)
	}
}

// counts reports whether an Approval was recorded for a task that waits, and for what that is about.
func counts(a *shipper.Approval, task *shipper.TaskStatus) bool {
	return shipper.ConditionTrue(a.Status.Conditions, shipper.ApprovalCounted) &&
		a.Status.EventID == task.EventID && a.Status.Subject == task.Subject
}

func countedApproval(a *shipper.Approval) shipper.CountedApproval {
	return shipper.CountedApproval{By: a.Spec.By.Username, Decision: a.Spec.Decision, Time: a.CreationTimestamp}
}
