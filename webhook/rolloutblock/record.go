// SPDX-License-Identifier: Apache-2.0

package rolloutblock

import (
	"strings"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/response"
)

// recordLifted records who lifts a block in the API server's audit log and in the webhook's log. It creates no event, because a
// caller can forge a review in another user's name. The reconciler records what it observes.
func (w *Webhook) recordLifted(req *admission.Request, a *response.Response, old *shipper.RolloutBlock) {
	a.Audit(response.AuditBlockLifted, block.Name(old).String())
	w.Log.Info("RolloutBlock is being deleted", "rolloutBlock", klog.KObj(old), "user", req.UserInfo.Username,
		"author", old.Spec.Author.Name, "message", old.Spec.Message, "since", old.CreationTimestamp.Time,
		"dryRun", dryRun(req))
}

// recordWeakened records who makes a block stop less.
func (w *Webhook) recordWeakened(req *admission.Request, a *response.Response, b, old *shipper.RolloutBlock) {
	fields := strings.Join(block.Weakened(&old.Spec, &b.Spec), ", ")
	if fields == "" {
		return
	}
	a.Audit(response.AuditBlockWeakened, block.Name(b).String()+": "+fields)
	w.Log.Info("RolloutBlock is being weakened", "rolloutBlock", klog.KObj(old), "user", req.UserInfo.Username,
		"fields", fields, "dryRun", dryRun(req))
}

func dryRun(req *admission.Request) bool { return req.DryRun != nil && *req.DryRun }
