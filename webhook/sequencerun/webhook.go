// SPDX-License-Identifier: Apache-2.0

// Package sequencerun validates runs of Shipyards: it writes into a run who started it, and refuses what its Shipyard cannot run, versions
// that lack what a stage requires, and more runs than a stage may have. The reconciler judges a run again, by the same rules, when it
// resolves it. Users' rights, and changes but of hold and abort, are refused by the policy and the schema.
package sequencerun

import (
	"context"
	"fmt"
	"maps"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/blockcheck"
	"shipper.dev/shipper/webhook/enumerated"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/response"
)

const (
	kind     = "SequenceRun"
	resource = "sequenceruns"
)

var specPath = field.NewPath("spec")

const byShipper = "is written by Shipper; leave it out"

// State has the objects related to a run. Those whose method ends in Now are read from the API server.
type State interface {
	ShipyardNow(ctx context.Context, key types.NamespacedName) (*shipper.Shipyard, error)
	SequenceRunNow(ctx context.Context, key types.NamespacedName) (*shipper.SequenceRun, error)
	WholeApplicationNow(ctx context.Context, key types.NamespacedName) (*shipper.Application, error)
	// RunsNow are the runs of a Shipyard in a stage for a service.
	RunsNow(ctx context.Context, of types.NamespacedName, stage, service string) ([]*shipper.SequenceRun, error)
	// Runs are those of a Shipyard, without data, and with the names of their tasks alone.
	Runs(of types.NamespacedName) ([]*shipper.SequenceRun, error)
	// RunsIn are those of a namespace, like that.
	RunsIn(namespace string) ([]*shipper.SequenceRun, error)
	Shipyards() []*shipper.Shipyard
	Releases(app types.NamespacedName) ([]*shipper.Release, error)
	// Around is an Application with its own Releases, as blocks need it.
	Around(app string, rels []*shipper.Release) block.App
	NamespaceTerminating(namespace string) bool
}

// Resolver resolves versions of charts.
type Resolver interface {
	Resolve(ctx context.Context, namespace string, want shipper.Chart) (repository.Resolution, error)
}

// Webhook validates runs.
type Webhook struct {
	State      State
	BlockCheck *blockcheck.Checker
	Guard      *protected.Guard
	Charts     Resolver
	Authz      authz.Authorizer
	Clock      clock.PassiveClock
}

// Default completes a new run, and restores the metadata of another.
func (w *Webhook) Default(ctx context.Context, req *admission.Request, a *response.Response) error {
	run, old, err := response.Decode[shipper.SequenceRun](req)
	if err != nil || run == nil {
		return nil // the schema refuses it with a better message
	}
	if err := enumerated.Check(kind, run.Name, run, old); err != nil {
		return err
	}
	if err := a.Complete(req.Object.Raw, run); err != nil {
		return err
	}
	if run.Namespace == "" {
		run.Namespace = req.Namespace
	}
	if old != nil {
		if err := w.Guard.Keep(ctx, req, a, protected.SequenceRun, &old.ObjectMeta, &run.ObjectMeta); err != nil {
			return err
		}
		if err := w.ownerOf(old).Restore(ctx, &old.ObjectMeta, &run.ObjectMeta); err != nil {
			return response.Later(err.Error(), authz.RetryAfter)
		}
		return nil
	}
	return w.create(ctx, req, run)
}

// create completes a new run: who created it, what it leaves out, and by what it is found.
func (w *Webhook) create(ctx context.Context, req *admission.Request, run *shipper.SequenceRun) error {
	if w.isFollowUp(req) {
		return nil
	}
	r, err := w.request(ctx, run)
	if err != nil {
		return err
	}
	if r.Yard == nil || run.Spec.RetryOf != nil && r.RetryOf == nil { // before the policy, which asks for a stage
		_, refusal := shipyard.Resolve(r)
		return refused(run, refusal)
	}
	by := shipper.ApprovalUser{Username: req.UserInfo.Username, UID: req.UserInfo.UID}
	if sent := run.Spec.RequestedBy; sent != (shipper.ApprovalUser{}) && sent != by {
		return response.Invalidate(kind, run.Name, field.ErrorList{field.Forbidden(specPath.Child("requestedBy"), byShipper)})
	}
	run.Spec.RequestedBy = by
	shipyard.Default(r)
	for key, value := range shipyard.LabelsOf(run) {
		response.Label(&run.ObjectMeta, key, value)
	}
	run.OwnerReferences = shipyard.Owners(r.Yard.Name, r.Yard.UID)
	return nil
}

// Validate validates a run before it is stored or deleted.
func (w *Webhook) Validate(ctx context.Context, req *admission.Request, a *response.Response) error {
	run, old, err := response.Decode[shipper.SequenceRun](req)
	switch {
	case err != nil:
		return err
	case req.Operation == admissionv1.Delete:
		return w.validateDelete(ctx, old)
	case old != nil:
		return w.validateUpdate(ctx, req, a, run, old)
	case w.isFollowUp(req):
		return nil // it is judged when it is resolved
	}
	if run.Namespace == "" {
		run.Namespace = req.Namespace
	}
	skipped, err := w.judge(ctx, a, run)
	if err != nil {
		return err
	}
	if err := response.Invalidate(kind, run.Name, labelled(run)); err != nil {
		return err
	}
	audit(a, run, skipped)
	dryRun(req, a, run)
	return w.warn(ctx, a, run)
}

// labelled has an error where labels or owner of a new run are not those that create writes.
func labelled(run *shipper.SequenceRun) field.ErrorList {
	var errs field.ErrorList
	of := shipyard.LabelsOf(run)
	for _, key := range slices.Sorted(maps.Keys(of)) {
		if run.Labels[key] != of[key] {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "labels").Key(key), byShipper))
		}
	}
	owners := shipyard.Owners(run.Spec.Shipyard, types.UID(run.Status.Resolved.Revision.UID))
	if !equality.Semantic.DeepEqual(run.OwnerReferences, owners) {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "ownerReferences"), byShipper))
	}
	return errs
}

// isFollowUp reports whether the reconciler creates a run.
func (w *Webhook) isFollowUp(req *admission.Request) bool {
	return req.UserInfo.Username == w.Guard.Reconciler
}

func shipyardKey(run *shipper.SequenceRun) types.NamespacedName {
	return types.NamespacedName{Namespace: run.Namespace, Name: run.Spec.Shipyard}
}

// ownerOf is the owner that the garbage collector deletes a run with.
func (w *Webhook) ownerOf(run *shipper.SequenceRun) protected.Owner {
	return protected.Owner{Kind: "Shipyard", Now: func(ctx context.Context) (metav1.Object, error) {
		yard, err := w.State.ShipyardNow(ctx, shipyardKey(run))
		if err != nil || yard == nil {
			return nil, err
		}
		return yard, nil
	}}
}

// validateDelete refuses the deletion of a run under way: what it does would stay as it is.
func (w *Webhook) validateDelete(ctx context.Context, old *shipper.SequenceRun) error {
	if shipyard.IsFinished(old) || w.State.NamespaceTerminating(old.Namespace) {
		return nil
	}
	yard, err := w.State.ShipyardNow(ctx, shipyardKey(old))
	switch {
	case err != nil:
		return response.Later(err.Error(), authz.RetryAfter)
	case yard == nil || yard.DeletionTimestamp != nil, old.Status.Resolved != nil && old.Status.Resolved.Revision.UID != string(yard.UID):
		return nil
	}
	return response.Forbid(resource, old.Name, fmt.Sprintf(
		`run %s is under way: abort it first: kubectl patch sr %s -n %s --type=merge -p '{"spec":{"abort":"<why>"}}'`, old.Name, old.Name,
		old.Namespace))
}
