// SPDX-License-Identifier: Apache-2.0

// Package release validates Releases: their stamp is consistent, their environment is immutable, their targetStep is a step of
// their strategy, and they do not move while a RolloutBlock stops them.
package release

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/blockcheck"
	"shipper.dev/shipper/webhook/check"
	"shipper.dev/shipper/webhook/enumerated"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/resources"
	"shipper.dev/shipper/webhook/response"
)

const (
	kind     = "Release"
	resource = "releases"
	short    = "rel"
)

// State has the objects related to a Release.
type State interface {
	Application(ctx context.Context, key types.NamespacedName) (*metav1.PartialObjectMetadata, error)
	ApplicationNow(ctx context.Context, key types.NamespacedName) (*metav1.PartialObjectMetadata, error)
	// App is the Application of rel, with its Releases.
	App(rel *shipper.Release) (block.App, error)
	// TrafficTargetsNow reads an Application's TrafficTargets from the API server.
	TrafficTargetsNow(ctx context.Context, app types.NamespacedName) ([]shipper.TrafficTarget, error)
	NamespaceTerminating(namespace string) bool
}

// Webhook validates Releases.
type Webhook struct {
	BlockCheck *blockcheck.Checker
	Guard      *protected.Guard
	State      State
	// Checks validates the checks that strategies name.
	Checks *check.Uses
	// Resources judges deletions of Releases with resources.
	Resources *resources.Judge
}

// Default checks and completes a write.
func (w *Webhook) Default(ctx context.Context, req *admission.Request, a *response.Response) error {
	rel, old, err := response.Decode[shipper.Release](req)
	if err != nil {
		return nil // the schema refuses it with a better message
	}
	if rel != nil {
		if err := enumerated.Check(kind, rel.Name, rel, old); err != nil {
			return err
		}
		if err := a.Complete(req.Object.Raw, rel); err != nil {
			return err
		}
		if err := w.complete(ctx, req, a, rel, old); err != nil {
			return err
		}
	}
	if rel != nil && old != nil { // before the policy, whose message says less
		if err := w.validateMove(ctx, req, rel, old); err != nil {
			return err
		}
	}
	placed := old != nil && old.Spec.Environment.Resources != nil
	return w.BlockCheck.Early(a, req.Namespace, placed, func(a *response.Response) error { return w.validate(ctx, req, a, rel, old) })
}

// Validate validates an object before it is stored or deleted.
func (w *Webhook) Validate(ctx context.Context, req *admission.Request, a *response.Response) error {
	rel, old, err := response.Decode[shipper.Release](req)
	if err != nil {
		return err
	}
	return w.validate(ctx, req, a, rel, old)
}

func (w *Webhook) validate(
	ctx context.Context, req *admission.Request, a *response.Response, rel, old *shipper.Release,
) error {
	switch req.Operation {
	case admissionv1.Delete:
		return w.validateDelete(ctx, req, a, old)
	case admissionv1.Create:
		return w.validateCreate(ctx, req, a, rel)
	default:
		return w.validateUpdate(ctx, req, a, rel, old)
	}
}

func overrider(rel *shipper.Release) response.Overrider {
	return response.OverriderOf(short, &rel.ObjectMeta)
}

// owner is the key of rel's Application, by its label, or by its reference when it has no label.
func owner(rel *shipper.Release) types.NamespacedName {
	name, labelled := rel.Labels[shipper.AppLabel]
	for _, ref := range rel.OwnerReferences {
		if !labelled && isApplication(ref) {
			name = ref.Name
		}
	}
	return types.NamespacedName{Namespace: rel.Namespace, Name: name}
}

// ownerOf is the owner that the garbage collector uses.
func (w *Webhook) ownerOf(rel *shipper.Release) protected.Owner {
	return protected.Owner{Kind: "Application", Now: func(ctx context.Context) (metav1.Object, error) {
		app, err := w.State.ApplicationNow(ctx, owner(rel))
		if err != nil || app == nil {
			return nil, err
		}
		return app, nil
	}}
}
