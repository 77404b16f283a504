// SPDX-License-Identifier: Apache-2.0

// Package shipyard validates Shipyards: runs of them can be done, their author may act as the ServiceAccount that runs write with, and none
// is deleted while a run is under way.
package shipyard

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/rights"
	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/response"
)

const (
	kind     = "Shipyard"
	resource = "shipyards"
	// maxListed bounds the runs that a message lists.
	maxListed = 5
)

// State has the objects related to a Shipyard.
type State interface {
	// Runs are those of a Shipyard, in no order.
	Runs(of types.NamespacedName) ([]*shipper.SequenceRun, error)
	// Shipyards are those of all namespaces.
	Shipyards() []*shipper.Shipyard
	NamespaceTerminating(namespace string) bool
}

// Webhook validates Shipyards.
type Webhook struct {
	State State
	Authz authz.Authorizer
	// Reconciler is the user name of Shipper's reconciler, which acts as the ServiceAccount of a Shipyard.
	Reconciler string
}

// Validate validates a Shipyard before it is stored or deleted.
func (w *Webhook) Validate(ctx context.Context, req *admission.Request, a *response.Response) error {
	now, old, err := response.Decode[shipper.Shipyard](req)
	if err != nil {
		return err
	}
	if req.Operation == admissionv1.Delete {
		return w.validateDelete(req, old)
	}
	if old != nil && !protected.IsController(req.UserInfo.Username) && protected.OwnerAdded(&old.ObjectMeta, &now.ObjectMeta) {
		if err := w.validateDelete(req, old); err != nil { // the garbage collector would delete it with the owner
			return err
		}
	}
	now.Namespace = req.Namespace
	if old != nil && equality.Semantic.DeepEqual(now.Spec, old.Spec) {
		return nil
	}
	errs := shipyard.Validate(now.Namespace, &now.Spec, field.NewPath("spec"))
	for _, problem := range validation.IsValidLabelValue(now.Name) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), now.Name, "is a label of all its runs: "+problem))
	}
	if err := response.Invalidate(kind, now.Name, errs); err != nil {
		return err
	}
	if err := w.permitRunner(ctx, req, now); err != nil {
		return err
	}
	response.WarnOfNulls(a, now, old, response.NullGate, "spec")
	for _, warning := range shipyard.Warnings(&now.Spec) {
		a.Warn("%s", warning)
	}
	w.warnOfShared(a, now)
	return w.warnOfRunner(ctx, a, now)
}

// impersonate is the right to act as the ServiceAccount that runs write with.
func impersonate(now *shipper.Shipyard) authz.Action {
	return authz.Action{
		Verb: "impersonate", Resource: "serviceaccounts", Namespace: now.Namespace, Name: shipyard.Snapshot(now).ServiceAccountName,
	}
}

// warnOfRunner warns that Shipper may not act as the ServiceAccount that runs write with.
func (w *Webhook) warnOfRunner(ctx context.Context, a *response.Response, now *shipper.Shipyard) error {
	needs := impersonate(now)
	namespace, name, _ := strings.Cut(strings.TrimPrefix(w.Reconciler, "system:serviceaccount:"), ":")
	bound, err := w.Authz.May(ctx, rights.ServiceAccount(namespace, name), needs)
	if err != nil {
		return response.Later(err.Error(), authz.RetryAfter)
	}
	if !bound {
		a.Warn("ServiceAccount %s is not bound to Shipper, and runs fail until it is: kubectl create rolebinding %s -n %s "+
			"--clusterrole=%s --serviceaccount=%s:%s", needs.Name, shipper.RunnerImpersonatorRole, now.Namespace, shipper.RunnerImpersonatorRole,
			namespace, name)
	}
	return nil
}

// permitRunner refuses an author who may not act as the ServiceAccount that runs write with: otherwise a Shipyard would give them its
// rights.
func (w *Webhook) permitRunner(ctx context.Context, req *admission.Request, now *shipper.Shipyard) error {
	account := shipyard.Snapshot(now).ServiceAccountName
	allowed, err := w.Authz.May(ctx, req.UserInfo, impersonate(now))
	switch {
	case err != nil:
		return response.Later(err.Error(), authz.RetryAfter)
	case !allowed:
		return response.Forbid(resource, now.Name, fmt.Sprintf("user %q may not impersonate serviceaccounts/%s in %s, as which runs of "+
			"Shipyard %s write: ask who owns the namespace for: kubectl create role %s -n %s --verb=impersonate --resource=serviceaccounts "+
			"--resource-name=%s, and a rolebinding to it", req.UserInfo.Username, account, req.Namespace, now.Name, account, req.Namespace, account))
	}
	return nil
}

// validateDelete refuses the deletion of a Shipyard with runs under way: the garbage collector would delete them in the midst of a task.
func (w *Webhook) validateDelete(req *admission.Request, old *shipper.Shipyard) error {
	if w.State.NamespaceTerminating(old.Namespace) || protected.Orphans(req, &old.ObjectMeta) {
		return nil
	}
	runs, err := w.State.Runs(types.NamespacedName{Namespace: old.Namespace, Name: old.Name})
	if err != nil {
		return err
	}
	var names []string
	for _, run := range runs {
		if !shipyard.IsFinished(run) {
			names = append(names, run.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return response.Forbid(resource, old.Name, nameRuns(names)+" under way: abort them first, or keep the runs by --cascade=orphan")
}

// nameRuns names runs in the sentence that they are under way.
func nameRuns(names []string) string {
	switch {
	case len(names) == 1:
		return "run " + names[0] + " is"
	case len(names) > maxListed:
		return fmt.Sprintf("runs %s and %d more are", strings.Join(names[:maxListed], ", "), len(names)-maxListed)
	}
	return "runs " + strings.Join(names, ", ") + " are"
}

// warnOfShared names other Shipyards that deploy to the same Applications: their runs would undo each other's.
func (w *Webhook) warnOfShared(a *response.Response, now *shipper.Shipyard) {
	own := applications(now)
	var found []string
	for _, other := range w.State.Shipyards() {
		if other.Namespace == now.Namespace && other.Name == now.Name {
			continue
		}
		for application, stage := range applications(other) {
			if mine, both := own[application]; both {
				also := "a Shipyard of another namespace" // its name is not for this user
				if other.Namespace == now.Namespace {
					also = fmt.Sprintf("stage %s of Shipyard %s", stage, other.Name)
				}
				found = append(found, fmt.Sprintf("stage %s deploys to the Applications %s, and so does %s", mine, application, also))
			}
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	for _, warning := range found[:min(len(found), maxListed)] {
		a.Warn("%s", warning)
	}
}

// applications are the namespace and pattern of the Applications that a Shipyard deploys to, with the stage.
func applications(of *shipper.Shipyard) map[string]string {
	out := map[string]string{}
	for i := range of.Spec.Stages {
		stage := &of.Spec.Stages[i]
		deploys := slices.ContainsFunc(stage.Sequences, func(s shipper.Sequence) bool {
			return slices.ContainsFunc(s.Tasks, func(t shipper.Task) bool { return t.Name == shipyard.TaskDeployment })
		})
		if deploys {
			key := shipyard.ApplicationKey(of.Namespace, stage, of.Name, "{service}")
			out[key.String()] = stage.Name
		}
	}
	return out
}
