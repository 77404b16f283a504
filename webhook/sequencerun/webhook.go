// SPDX-License-Identifier: Apache-2.0

// Package sequencerun validates runs of Shipyards: it writes into a run who started it, what it delivers and the Shipyard as it is then,
// and refuses users without the right, versions that lack what a stage requires, and changes but hold and abort.
package sequencerun

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
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
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/response"
)

const (
	kind     = "SequenceRun"
	resource = "sequenceruns"
)

var specPath = field.NewPath("spec")

// State has the objects related to a run. Those whose method ends in Now are read from the API server.
type State interface {
	ShipyardNow(ctx context.Context, key types.NamespacedName) (*shipper.Shipyard, error)
	SequenceRunNow(ctx context.Context, key types.NamespacedName) (*shipper.SequenceRun, error)
	WholeApplicationNow(ctx context.Context, key types.NamespacedName) (*shipper.Application, error)
	// RunsNow are the runs of a Shipyard in a stage for a service.
	RunsNow(ctx context.Context, of types.NamespacedName, stage, service string) ([]*shipper.SequenceRun, error)
	// Runs are those of a Shipyard, without data, and with their own tasks in place of the snapshot.
	Runs(of types.NamespacedName) ([]*shipper.SequenceRun, error)
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
		return w.permitUpdate(ctx, req, run, old) // before the policy, whose message says less
	}
	return w.create(ctx, req, a, run)
}

// create completes a new run and judges it.
func (w *Webhook) create(ctx context.Context, req *admission.Request, a *response.Response, run *shipper.SequenceRun) error {
	yard, err := w.shipyard(ctx, run)
	if err != nil {
		return err
	}
	if w.isFollowUp(req) {
		label(run, yard)
		return w.judgeFollowUp(ctx, run, yard)
	}
	if err := response.Invalidate(kind, run.Name, written(run)); err != nil {
		return err
	}
	before, err := w.retried(ctx, run, yard, req.UserInfo.Username)
	if err != nil {
		return err
	}
	if before != nil {
		repeat(run, before, req.UserInfo.Username)
	} else {
		shipyard.Default(&run.Spec, &yard.Spec)
		run.Spec.Snapshot, run.Spec.Context = shipyard.Snapshot(yard), string(req.UID)
	}
	run.Spec.RequestedBy = shipper.ApprovalUser{Username: req.UserInfo.Username, UID: req.UserInfo.UID}
	label(run, yard)
	if err := w.permit(ctx, req, run, yard); err != nil {
		return err
	}
	if before == nil && shipyard.Deploys(&run.Spec) {
		if err := w.resolve(ctx, a, run); err != nil {
			return err
		}
	}
	_, err = w.judge(ctx, run, yard, nil)
	return err
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
	}
	if run.Namespace == "" {
		run.Namespace = req.Namespace
	}
	yard, err := w.shipyard(ctx, run)
	if err != nil {
		return err
	}
	if err := response.Invalidate(kind, run.Name, labelled(run, yard)); err != nil {
		return err
	}
	if w.isFollowUp(req) {
		return w.judgeFollowUp(ctx, run, yard)
	}
	if err := w.stamped(ctx, req, run, yard); err != nil {
		return err
	}
	if err := w.permit(ctx, req, run, yard); err != nil {
		return err
	}
	skipped, err := w.judge(ctx, run, yard, nil)
	if err != nil {
		return err
	}
	a.Audit(response.AuditRunStarted, strings.TrimSpace(fmt.Sprintf("%s/%s of %s for %s %s", run.Spec.Stage, run.Spec.Sequence, yard.Name,
		run.Spec.Service, run.Spec.Version.Version)))
	if run.Spec.SkipRequires != nil {
		a.Audit(response.AuditRunOverridden, strings.Join(append([]string{run.Spec.SkipRequires.Reason}, skipped...), "; "))
	}
	return w.warn(ctx, a, run)
}

// isFollowUp reports whether the reconciler creates a run.
func (w *Webhook) isFollowUp(req *admission.Request) bool {
	return req.UserInfo.Username == w.Guard.Reconciler
}

// shipyard is the Shipyard of a new run. One that is not there is refused, with those that are.
func (w *Webhook) shipyard(ctx context.Context, run *shipper.SequenceRun) (*shipper.Shipyard, error) {
	yard, err := w.State.ShipyardNow(ctx, shipyardKey(run))
	switch {
	case err != nil:
		return nil, response.Later(err.Error(), authz.RetryAfter)
	case yard == nil:
		var names []string
		for _, other := range w.State.Shipyards() {
			if other.Namespace == run.Namespace {
				names = append(names, other.Name)
			}
		}
		slices.Sort(names)
		problem := field.NotFound(specPath.Child("shipyard"), run.Spec.Shipyard)
		problem.Detail = "there is no Shipyard in namespace " + run.Namespace
		if len(names) > 0 {
			problem.Detail = "there are: " + strings.Join(names, ", ")
		}
		return nil, response.Invalidate(kind, run.Name, field.ErrorList{problem})
	case yard.DeletionTimestamp != nil:
		return nil, response.Forbid(resource, run.Name, fmt.Sprintf("Shipyard %s is being deleted: no run of it starts", yard.Name))
	}
	return yard, nil
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
	case yard == nil || yard.DeletionTimestamp != nil || old.Spec.Snapshot != nil && old.Spec.Snapshot.UID != string(yard.UID):
		return nil
	}
	return response.Forbid(resource, old.Name, fmt.Sprintf(
		`run %s is under way: abort it first: kubectl patch sr %s -n %s --type=merge -p '{"spec":{"abort":"<why>"}}'`, old.Name, old.Name,
		old.Namespace))
}
