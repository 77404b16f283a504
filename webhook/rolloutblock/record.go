// SPDX-License-Identifier: Apache-2.0

package rolloutblock

import (
	"fmt"
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
	w.tell(req, old, "RolloutBlockLifted", "Delete",
		fmt.Sprintf("%s deletes the block of %s: %s", req.UserInfo.Username, authors(old), old.Spec.Message))
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
	w.tell(req, b, "RolloutBlockWeakened", "Update by "+req.UserInfo.Username+" of "+fields,
		fmt.Sprintf("%s changes what the block of %s stops: %s", req.UserInfo.Username, authors(old), fields))
}

// authors are who the block says has put it in place, and who really has, if that is another.
func authors(b *shipper.RolloutBlock) string {
	author, creator := b.Spec.Author.Name, b.Annotations[shipper.RolloutBlockCreatedByAnnotation]
	if creator == "" || authorOf(creator).Name == author {
		return author
	}
	return author + " (created by " + creator + ")"
}

// What the API takes of an event.
const (
	maxNote   = 1024
	maxAction = 128
)

// tell is silent on dry runs, which leave nothing behind. Of several events alike the API keeps the first note for some
// minutes: what is to be told on its own has an action of its own.
func (w *Webhook) tell(req *admission.Request, b *shipper.RolloutBlock, reason, action, note string) {
	if w.Events == nil || dryRun(req) {
		return
	}
	w.Events.Eventf(b, nil, corev1.EventTypeWarning, reason, shorten(action, maxAction), "%s", shorten(note, maxNote))
}

// shorten cuts a text to at most n bytes, on a rune.
func shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}

func dryRun(req *admission.Request) bool { return req.DryRun != nil && *req.DryRun }
