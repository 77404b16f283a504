// SPDX-License-Identifier: Apache-2.0

// Package approval validates new Approvals: their author did not ask for the Release or the run, and its step or task waits for approval.
// It stamps the author and what the policy and the reconcilers find them by. The policy holds the verb approve, and refuses changes.
package approval

import (
	"cmp"
	"context"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/enumerated"
	"shipper.dev/shipper/webhook/response"
)

const (
	kind     = "Approval"
	resource = "approvals"
)

var (
	specPath = field.NewPath("spec")
	metaPath = field.NewPath("metadata")
)

// State has Releases and runs, read from the API server: an Approval counts for the position that they have now.
type State interface {
	SequenceRunNow(ctx context.Context, key types.NamespacedName) (*shipper.SequenceRun, error)
	ReleaseNow(ctx context.Context, key types.NamespacedName) (*shipper.Release, error)
}

// Webhook validates Approvals.
type Webhook struct {
	State State
	Clock clock.PassiveClock
	// Reconciler is the user name of Shipper's reconciler, which approves nothing.
	Reconciler string
}

// approvable is the Release or the run that an Approval names.
type approvable interface {
	// stamp writes into an Approval for which position it is, and by what it is found.
	stamp(a *shipper.Approval)
	// judge refuses an Approval that would not count.
	judge(a *shipper.Approval) error
}

// Default completes a new Approval.
func (w *Webhook) Default(ctx context.Context, req *admission.Request, a *response.Response) error {
	is, _, err := response.Decode[shipper.Approval](req)
	if err != nil || is == nil || (is.Spec.Run == "") == (is.Spec.Release == "") || is.Spec.Run == "" && is.Spec.Step == nil {
		return nil // the schema refuses it with a better message
	}
	if err := enumerated.Check(kind, is.Name, is, nil); err != nil {
		return err
	}
	if err := a.Complete(req.Object.Raw, is); err != nil {
		return err
	}
	of, err := w.approvable(ctx, req.Namespace, is)
	if err != nil {
		return err
	}
	complete(is, req.UserInfo, of)
	return nil
}

// Validate validates an Approval before it is stored.
func (w *Webhook) Validate(ctx context.Context, req *admission.Request, _ *response.Response) error {
	is, _, err := response.Decode[shipper.Approval](req)
	if err != nil {
		return err
	}
	of, err := w.approvable(ctx, req.Namespace, is)
	if err != nil {
		return err
	}
	if err := response.Invalidate(kind, is.Name, forged(is, req.UserInfo, of)); err != nil {
		return err
	}
	return of.judge(is)
}

// complete writes who gives an Approval, for which position, and by what it is found.
func complete(a *shipper.Approval, by authenticationv1.UserInfo, of approvable) {
	a.Spec.By = shipper.ApprovalUser{Username: by.Username, UID: by.UID}
	of.stamp(a)
}

// forged has an error where an Approval is not as complete leaves it.
func forged(is *shipper.Approval, by authenticationv1.UserInfo, of approvable) field.ErrorList {
	want := is.DeepCopy()
	complete(want, by, of)
	var errs field.ErrorList
	for path, same := range map[*field.Path]bool{
		specPath.Child("by"):              is.Spec.By == want.Spec.By,
		specPath.Child("move"):            is.Spec.Move == want.Spec.Move,
		metaPath.Child("labels"):          equality.Semantic.DeepEqual(is.Labels, want.Labels),
		metaPath.Child("ownerReferences"): equality.Semantic.DeepEqual(is.OwnerReferences, want.OwnerReferences),
	} {
		if !same {
			errs = append(errs, field.Forbidden(path, "is written by Shipper; leave it out"))
		}
	}
	slices.SortFunc(errs, func(a, b *field.Error) int { return cmp.Compare(a.Field, b.Field) })
	return errs
}

// unread has an error for each field that earlier versions wrote and no version reads: an author could take it for what is approved.
func unread(is *shipper.Approval) field.ErrorList {
	var errs field.ErrorList
	for name, given := range map[string]bool{
		"eventID": is.Spec.EventID != "", "subject": is.Spec.Subject != "", "time": is.Spec.Time != nil,
	} {
		if given {
			errs = append(errs, field.Forbidden(specPath.Child(name), "is not read: leave it out"))
		}
	}
	slices.SortFunc(errs, func(a, b *field.Error) int { return cmp.Compare(a.Field, b.Field) })
	return errs
}

// approvable reads the Release or the run that is named. One that is not there is refused, and so is an Approval with fields that nothing
// reads.
func (w *Webhook) approvable(ctx context.Context, namespace string, a *shipper.Approval) (approvable, error) {
	if err := response.Invalidate(kind, a.Name, unread(a)); err != nil {
		return nil, err
	}
	name, value := "run", a.Spec.Run
	if value == "" {
		name, value = "release", a.Spec.Release
	}
	key := types.NamespacedName{Namespace: namespace, Name: value}
	var of approvable
	var err error
	if name == "run" {
		var run *shipper.SequenceRun
		if run, err = w.State.SequenceRunNow(ctx, key); run != nil {
			of = ofRun{run, w.Clock.Now(), w.Reconciler}
		}
	} else {
		var rel *shipper.Release
		if rel, err = w.State.ReleaseNow(ctx, key); rel != nil {
			of = ofRelease{rel}
		}
	}
	switch {
	case err != nil:
		return nil, response.Later(err.Error(), authz.RetryAfter)
	case of == nil:
		return nil, response.Invalidate(kind, a.Name, field.ErrorList{field.NotFound(specPath.Child(name), value)})
	}
	return of, nil
}
