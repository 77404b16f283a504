// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/response"
)

const byShipper = "is written by Shipper; leave it out"

// stampRun writes which task of its run an Approval is of, and what it approves.
func (w *Webhook) stampRun(ctx context.Context, req *admission.Request, is *shipper.Approval) error {
	run, err := w.run(ctx, req.Namespace, is)
	if err != nil {
		return err
	}
	is.Spec.Move, is.Spec.EventID, is.Spec.Subject = 0, "", shipyard.Subject(run)
	if task, _, why := shipyard.Awaited(run, w.Clock.Now()); why == "" {
		is.Spec.EventID = task.EventID
		if is.Spec.Task == "" {
			is.Spec.Task = shipyard.NameOf(task)
		}
	}
	for key, value := range runLabels(run) {
		response.Label(&is.ObjectMeta, key, value)
	}
	is.OwnerReferences = runOwners(run)
	return w.judgeRun(ctx, req, is, run) // before the policy, whose message says less
}

// runLabels are those of an Approval of a run. The policy reads the stage from them; the reconciler compares them with the run.
func runLabels(run *shipper.SequenceRun) map[string]string {
	return map[string]string{shipper.RunLabel: run.Name, shipper.ShipyardLabel: run.Spec.Shipyard, shipper.StageLabel: run.Spec.Stage}
}

// runOwners are those of an Approval of a run: it goes with the run, and does not count for the next one of that name.
func runOwners(run *shipper.SequenceRun) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: shipper.GroupVersion.String(), Kind: "SequenceRun", Name: run.Name, UID: run.UID}}
}

// validateRun validates an Approval of a run before it is stored.
func (w *Webhook) validateRun(ctx context.Context, req *admission.Request, is *shipper.Approval) error {
	run, err := w.run(ctx, req.Namespace, is)
	if err != nil {
		return err
	}
	var errs field.ErrorList
	by := shipper.ApprovalUser{Username: req.UserInfo.Username, UID: req.UserInfo.UID}
	task, _, why := shipyard.Awaited(run, w.Clock.Now())
	for name, right := range map[string]bool{
		"by": is.Spec.By == by, "move": is.Spec.Move == 0, "subject": is.Spec.Subject == shipyard.Subject(run),
		"eventID": why != "" || is.Spec.EventID == task.EventID,
	} {
		if !right {
			errs = append(errs, field.Forbidden(specPath.Child(name), byShipper))
		}
	}
	for key, value := range runLabels(run) {
		if is.Labels[key] != value {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "labels").Key(key), byShipper))
		}
	}
	if !equality.Semantic.DeepEqual(is.OwnerReferences, runOwners(run)) {
		errs = append(errs, field.Forbidden(ownersPath, "are written by Shipper; leave them out"))
	}
	slices.SortFunc(errs, func(a, b *field.Error) int { return cmp.Compare(a.Field, b.Field) })
	if err := response.Invalidate(kind, is.Name, errs); err != nil {
		return err
	}
	return w.judgeRun(ctx, req, is, run)
}

// run reads the run that is named. One that is not there is refused.
func (w *Webhook) run(ctx context.Context, namespace string, is *shipper.Approval) (*shipper.SequenceRun, error) {
	run, err := w.State.SequenceRunNow(ctx, types.NamespacedName{Namespace: namespace, Name: is.Spec.Run})
	if err != nil {
		return nil, response.Later(err.Error(), authz.RetryAfter)
	}
	if run == nil {
		return nil, response.Invalidate(kind, is.Name, field.ErrorList{field.NotFound(specPath.Child("run"), is.Spec.Run)})
	}
	return run, nil
}

// judgeRun refuses an Approval by a user who may not give it, or of a task that waits for none.
func (w *Webhook) judgeRun(ctx context.Context, req *admission.Request, is *shipper.Approval, run *shipper.SequenceRun) error {
	user, rejects := req.UserInfo.Username, is.Spec.Decision == shipper.DecisionReject
	of := types.NamespacedName{Namespace: req.Namespace, Name: run.Spec.Shipyard}
	task, asks, why := shipyard.Awaited(run, w.Clock.Now())
	requested := slices.Contains(shipyard.Requesters(run), user)
	allowed, err := authz.OnStage(ctx, w.Authz, req.UserInfo, authz.Approve, of, run.Spec.Stage)
	switch {
	case err != nil:
		return response.Later(err.Error(), authz.RetryAfter)
	case !allowed:
		return response.Forbid(resource, is.Name, fmt.Sprintf("user %q may not approve runs in stage %s of shipyard %s: %s", user, run.Spec.Stage,
			of.Name, authz.StageRemedy(authz.Approve, of, run.Spec.Stage)))
	case user == w.Reconciler, run.Status.Resolved != nil && user == shipyard.Runner(run):
		return response.Forbid(resource, is.Name, fmt.Sprintf("user %q writes what run %s does: another user has to approve it", user, run.Name))
	case why == "" && !rejects && requested && !asks.AllowRequester:
		return response.Forbid(resource, is.Name, fmt.Sprintf("user %q has asked for run %s: another user has to approve it", user, run.Name))
	}
	path, value := specPath.Child("task"), is.Spec.Task
	switch {
	case why != "":
		path, value, why = specPath.Child("run"), run.Name, fmt.Sprintf("run %s waits for no approval: %s", run.Name, why)
	case is.Spec.Task != shipyard.NameOf(task):
		why = fmt.Sprintf("run %s waits for task %s", run.Name, shipyard.NameOf(task))
	case slices.ContainsFunc(task.Approvals, func(a shipper.CountedApproval) bool { return a.By == user }) && !rejects:
		why = fmt.Sprintf("user %q has approved task %s of run %s already", user, shipyard.NameOf(task), run.Name)
	}
	if why == "" {
		return nil
	}
	return response.Invalidate(kind, is.Name, field.ErrorList{field.Invalid(path, value, why)})
}
