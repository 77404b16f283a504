// SPDX-License-Identifier: Apache-2.0

// Package approval validates Approvals: who gives one has the verb approve on the Release, or on the stage of the run, and did not ask for
// it, the step or task waits for approval, and it has the name of its author.
package approval

import (
	"context"
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/response"
)

const (
	kind     = "Approval"
	resource = "approvals"
)

var (
	specPath   = field.NewPath("spec")
	ownersPath = field.NewPath("metadata", "ownerReferences")
)

// State has Releases and runs, read from the API server: an Approval counts for the position that they have now.
type State interface {
	SequenceRunNow(ctx context.Context, key types.NamespacedName) (*shipper.SequenceRun, error)
	ReleaseNow(ctx context.Context, key types.NamespacedName) (*shipper.Release, error)
}

// Webhook validates Approvals.
type Webhook struct {
	State State
	Authz authz.Authorizer
	Clock clock.PassiveClock
	// Reconciler is the user name of Shipper's reconciler, which approves nothing.
	Reconciler string
}

// Default writes who gives the Approval, when, and for which position of the Release.
func (w *Webhook) Default(ctx context.Context, req *admission.Request, a *response.Response) error {
	is, old, err := response.Decode[shipper.Approval](req)
	byRun := is != nil && is.Spec.Run != ""
	if err != nil || is == nil || old != nil || !byRun && (is.Spec.Release == "" || is.Spec.Step == nil) || byRun && is.Spec.Release != "" {
		return nil // the schema refuses it with a better message, and nothing changes
	}
	if err := a.Complete(req.Object.Raw, is); err != nil {
		return err
	}
	is.Spec.By = shipper.ApprovalUser{Username: req.UserInfo.Username, UID: req.UserInfo.UID}
	is.Spec.Time = &metav1.Time{Time: w.Clock.Now().UTC().Truncate(time.Second)}
	if byRun {
		return w.stampRun(ctx, req, is)
	}
	rel, err := w.release(ctx, req.Namespace, is)
	if err != nil {
		return err
	}
	is.Spec.EventID, is.Spec.Subject = "", ""
	is.Spec.Move = stamp.Moved(rel).Count
	response.Label(&is.ObjectMeta, shipper.AppLabel, rel.Labels[shipper.AppLabel])
	response.Label(&is.ObjectMeta, shipper.ReleaseLabel, rel.Name)
	is.OwnerReferences = owners(rel)
	return w.judge(ctx, req, is, rel) // before the policy, whose message says less
}

// owners are those of an Approval of a Release: it goes with the Release, and does not count for the next one of that name.
func owners(rel *shipper.Release) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: shipper.GroupVersion.String(), Kind: "Release", Name: rel.Name, UID: rel.UID}}
}

// Validate validates an Approval before it is stored.
func (w *Webhook) Validate(ctx context.Context, req *admission.Request, _ *response.Response) error {
	is, old, err := response.Decode[shipper.Approval](req)
	if err != nil || req.Operation == admissionv1.Delete {
		return err
	}
	if old != nil {
		return validateUpdate(is, old)
	}
	if is.Spec.Run != "" {
		return w.validateRun(ctx, req, is)
	}
	rel, err := w.release(ctx, req.Namespace, is)
	if err != nil {
		return err
	}
	var errs field.ErrorList
	by := shipper.ApprovalUser{Username: req.UserInfo.Username, UID: req.UserInfo.UID}
	if is.Spec.By != by {
		errs = append(errs, field.Invalid(specPath.Child("by"), is.Spec.By.Username, "is written by Shipper; leave it out"))
	}
	if is.Spec.Move != stamp.Moved(rel).Count {
		errs = append(errs, field.Invalid(specPath.Child("move"), is.Spec.Move, "is written by Shipper; leave it out"))
	}
	if is.Spec.EventID != "" || is.Spec.Subject != "" {
		errs = append(errs, field.Forbidden(specPath.Child("eventID"), "and subject are for Approvals of runs; leave them out"))
	}
	if is.Labels[shipper.AppLabel] != rel.Labels[shipper.AppLabel] || is.Labels[shipper.ReleaseLabel] != rel.Name {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "labels"), "those of Shipper are written by it; leave them out"))
	}
	if !equality.Semantic.DeepEqual(is.OwnerReferences, owners(rel)) {
		errs = append(errs, field.Forbidden(ownersPath, "are written by Shipper; leave them out"))
	}
	if err := response.Invalidate(kind, is.Name, errs); err != nil {
		return err
	}
	return w.judge(ctx, req, is, rel)
}

// validateUpdate refuses other labels and owners: Shipper finds Approvals by these, and counts them. The schema keeps spec.
func validateUpdate(is, old *shipper.Approval) error {
	var errs field.ErrorList
	if !equality.Semantic.DeepEqual(is.OwnerReferences, old.OwnerReferences) {
		errs = append(errs, field.Forbidden(ownersPath, "are written by Shipper; leave them as they are"))
	}
	for _, key := range []string{shipper.AppLabel, shipper.ReleaseLabel, shipper.RunLabel, shipper.ShipyardLabel, shipper.StageLabel} {
		if is.Labels[key] != old.Labels[key] {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "labels").Key(key), "is written by Shipper; leave it as it is"))
		}
	}
	return response.Invalidate(kind, is.Name, errs)
}

// release reads the Release that is named. One that is not there is refused.
func (w *Webhook) release(ctx context.Context, namespace string, is *shipper.Approval) (*shipper.Release, error) {
	rel, err := w.State.ReleaseNow(ctx, types.NamespacedName{Namespace: namespace, Name: is.Spec.Release})
	if err != nil {
		return nil, response.Later(err.Error(), authz.RetryAfter)
	}
	if rel == nil {
		return nil, response.Invalidate(kind, is.Name, field.ErrorList{field.NotFound(specPath.Child("release"), is.Spec.Release)})
	}
	return rel, nil
}

// judge refuses an Approval by a user who may not give it, or of a step that waits for none.
func (w *Webhook) judge(ctx context.Context, req *admission.Request, is *shipper.Approval, rel *shipper.Release) error {
	user := req.UserInfo.Username
	allowed, err := w.Authz.Allowed(ctx, req.UserInfo, authz.Approve, "releases",
		types.NamespacedName{Namespace: req.Namespace, Name: rel.Name})
	switch {
	case err != nil:
		return response.Later(err.Error(), authz.RetryAfter)
	case !allowed:
		return response.Forbid(resource, is.Name, fmt.Sprintf(
			"user %q may not approve steps of Release %s: the verb approve on releases.%s is needed", user, rel.Name, shipper.GroupName))
	case is.Spec.Decision != shipper.DecisionReject && slices.Contains(stamp.Requesters(rel), user):
		return response.Forbid(resource, is.Name, fmt.Sprintf("user %q has asked for Release %s: another user has to approve it", user, rel.Name))
	}
	why, step := "", ptr.Deref(is.Spec.Step, 0) // the schema asks for one
	switch p := rel.Status.Progress; {
	case step != rel.Spec.TargetStep:
		why = fmt.Sprintf("Release %s is at step %d", rel.Name, rel.Spec.TargetStep)
	case p == nil || p.Approvals == nil || p.Step != step || p.Move != stamp.Moved(rel).Count || p.ConvergedTime == nil:
		why = fmt.Sprintf("step %d of Release %s is not waiting for approval", step, rel.Name)
		if c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseAdvancing); c != nil && c.Message != "" {
			why += ": " + c.Message
		}
	case is.Spec.Decision == shipper.DecisionReject && p.Approvals.RejectedBy == user:
		why = fmt.Sprintf("user %q has refused step %d of Release %s already", user, step, rel.Name)
	case is.Spec.Decision == shipper.DecisionReject:
	case slices.Contains(p.Approvals.Users, user):
		why = fmt.Sprintf("user %q has approved step %d of Release %s already", user, step, rel.Name)
	case len(p.Approvals.Users) >= int(p.Approvals.Required):
		why = fmt.Sprintf("step %d of Release %s has the approvals that it needs: raise targetStep", step, rel.Name)
	}
	if why == "" {
		return nil
	}
	return response.Invalidate(kind, is.Name, field.ErrorList{field.Invalid(specPath.Child("step"), step, why)})
}
