// SPDX-License-Identifier: Apache-2.0

// Package target validates InstallationTargets, CapacityTargets, TrafficTargets and CheckTargets: only Shipper writes their spec, for an
// existing Release, and not while a RolloutBlock stops that Release. Blocks do not stop checks, which change no workload.
package target

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/blockcheck"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/response"
)

// State has the objects related to a target.
type State interface {
	Release(ctx context.Context, key types.NamespacedName) (*shipper.Release, error)
	ReleaseNow(ctx context.Context, key types.NamespacedName) (*shipper.Release, error)
	// App is the Application of rel, with its Releases.
	App(rel *shipper.Release) (block.App, error)
	NamespaceTerminating(namespace string) bool
}

// Kind is one of the kinds of targets.
type Kind struct {
	// Name and Resource are the kind and its plural.
	Name, Resource string
	// Instead is the edit to suggest to a user.
	Instead string
	// Unblocked is true where RolloutBlocks do not stop a change.
	Unblocked bool
}

// byStrategy says how to change capacity and traffic.
const byStrategy = "change targetStep of the Release, or the strategy of the Application"

// The kinds of targets.
var (
	Installation = Kind{Name: "InstallationTarget", Resource: "installationtargets", Instead: "edit spec.template of the Application"}
	Capacity     = Kind{Name: "CapacityTarget", Resource: "capacitytargets", Instead: byStrategy}
	Traffic      = Kind{Name: "TrafficTarget", Resource: "traffictargets", Instead: byStrategy}
	Check        = Kind{
		Name: "CheckTarget", Resource: "checktargets", Unblocked: true,
		Instead: "change the Check or the strategy of the Application, or annotate the Release with " + shipper.ReleaseChecksRetryAnnotation,
	}
)

// Webhook validates targets of one kind.
type Webhook struct {
	Kind       Kind
	BlockCheck *blockcheck.Checker
	State      State
	// Guard has the name of the reconciler, which writes targets.
	Guard *protected.Guard
}

// object has the fields that the kinds share.
type object struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              any `json:"spec"`
}

// Validate validates an object before it is stored or deleted.
func (w *Webhook) Validate(ctx context.Context, req *admission.Request, a *response.Response) error {
	now, old, err := response.Decode[object](req)
	if err != nil {
		return err
	}
	switch req.Operation {
	case admissionv1.Delete:
		return w.validateDelete(ctx, a, old)
	case admissionv1.Create:
		return w.validateCreate(ctx, req, a, now)
	default:
		return w.validateUpdate(ctx, req, a, now, old)
	}
}
