// SPDX-License-Identifier: Apache-2.0

package rolloutblock

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/answer"
)

// recordLifted leaves a trace of who lifts a block: in the API server's audit log, in ours and in an event.
func (w *Webhook) recordLifted(req *admission.Request, a *answer.Answer, old *shipper.RolloutBlock) {
	a.Audit(answer.AuditBlockLifted, block.Name(old).String())
	w.Log.Info("RolloutBlock is being deleted", "rolloutBlock", klog.KObj(old), "user", req.UserInfo.Username,
		"author", old.Spec.Author.Name, "message", old.Spec.Message, "since", old.CreationTimestamp.Time,
		"dryRun", dryRun(req))
	w.tell(req, old, "RolloutBlockLifted", "Delete", "%s deletes the block that %s made: %s",
		req.UserInfo.Username, old.Spec.Author.Name, old.Spec.Message)
}

// recordWeakened leaves the same trace of who makes a block stop less.
func (w *Webhook) recordWeakened(req *admission.Request, a *answer.Answer, b, old *shipper.RolloutBlock) {
	fields := strings.Join(block.Weakened(&old.Spec, &b.Spec), ", ")
	if fields == "" {
		return
	}
	a.Audit(answer.AuditBlockWeakened, block.Name(b).String()+": "+fields)
	w.Log.Info("RolloutBlock is being weakened", "rolloutBlock", klog.KObj(old), "user", req.UserInfo.Username,
		"fields", fields, "dryRun", dryRun(req))
	w.tell(req, b, "RolloutBlockWeakened", "Update", "%s changes what the block stops: %s", req.UserInfo.Username, fields)
}

// tell is silent on dry runs, which leave nothing behind.
func (w *Webhook) tell(
	req *admission.Request, b *shipper.RolloutBlock, reason, action, note string, args ...any,
) {
	if w.Events == nil || dryRun(req) {
		return
	}
	w.Events.Eventf(b, nil, corev1.EventTypeWarning, reason, action, note, args...)
}

func dryRun(req *admission.Request) bool { return req.DryRun != nil && *req.DryRun }
