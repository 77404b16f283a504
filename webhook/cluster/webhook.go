// SPDX-License-Identifier: Apache-2.0

// Package cluster validates Clusters: their address and offers must make sense, and a user who deletes one is warned of the
// Releases that run there.
package cluster

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/outward"
	"shipper.dev/shipper/webhook/response"
)

const kind = "Cluster"

// State has the Releases on a Cluster.
type State interface {
	PlacedOn(cluster string) ([]string, error)
}

// Webhook validates Clusters.
type Webhook struct {
	State State
	// Outgoing is the policy for servers of metrics besides those by https. Nil: there are none besides.
	Outgoing *outward.Policy
}

// Validate validates an object before it is stored or deleted.
func (w *Webhook) Validate(_ context.Context, req *admission.Request, a *response.Response) error {
	now, old, err := response.Decode[shipper.Cluster](req)
	if err != nil {
		return err
	}
	if req.Operation == admissionv1.Delete {
		if err := w.awaitsFinalizer(old); err != nil {
			return err
		}
		return w.warnOfPlaced(a, req.Name, old.Spec.OnLeave)
	}
	if old != nil && equality.Semantic.DeepEqual(now.Spec, old.Spec) {
		return nil
	}
	errs := append(validate(&now.Spec), w.validateMetrics(now.Spec.Metrics)...)
	if err := response.Invalidate(kind, now.Name, errs); err != nil {
		return err
	}
	if m := now.Spec.Metrics; m != nil && m.TenantLabel == "" {
		a.Warn("spec.metrics has no tenantLabel: every Application reads the series of all namespaces")
	}
	return w.warnOfStaying(a, now, old)
}
