// SPDX-License-Identifier: Apache-2.0

// Package rolloutblock judges RolloutBlocks: they say why and by whom, and lifting one leaves a trace.
package rolloutblock

import (
	"context"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/answer"
)

const kind = "RolloutBlock"

// Webhook judges RolloutBlocks.
type Webhook struct {
	// GlobalNamespace is the namespace whose blocks stop rollouts everywhere.
	GlobalNamespace string
	Log             logr.Logger
}

// Default stamps the author.
func (w *Webhook) Default(_ context.Context, req *admission.Request, a *answer.Answer) error {
	b, old, err := answer.Decode[shipper.RolloutBlock](req)
	if err != nil || b == nil {
		return nil // the schema refuses it in better words, and deletions are not completed
	}
	stampAuthor(a, b, old, req.UserInfo.Username)
	return nil
}

// Validate judges what is about to be stored, and records what is deleted.
func (w *Webhook) Validate(_ context.Context, req *admission.Request, a *answer.Answer) error {
	b, old, err := answer.Decode[shipper.RolloutBlock](req)
	if err != nil {
		return err
	}
	if req.Operation == admissionv1.Delete {
		w.record(req, a, old)
		return nil
	}
	if old != nil && b.Spec == old.Spec {
		return nil
	}
	if err := answer.Invalidate(kind, b.Name, validate(&b.Spec)); err != nil {
		return err
	}
	if old == nil && b.Namespace == w.GlobalNamespace {
		a.Warn("this stops rollouts in every namespace, at once")
	}
	return nil
}

// record leaves a trace of who lifted a block, in the API server's audit log and in ours.
func (w *Webhook) record(req *admission.Request, a *answer.Answer, old *shipper.RolloutBlock) {
	a.Audit(answer.AuditBlockLifted, block.Name(old).String())
	w.Log.Info("RolloutBlock is being deleted", "rolloutBlock", klog.KObj(old), "user", req.UserInfo.Username,
		"author", old.Spec.Author.Name, "message", old.Spec.Message, "since", old.CreationTimestamp.Time,
		"dryRun", req.DryRun != nil && *req.DryRun)
}
