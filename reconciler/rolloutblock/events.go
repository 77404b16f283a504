// SPDX-License-Identifier: Apache-2.0

package rolloutblock

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	rules "shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// byWhom ends the notes about a user's action: a watch does not name the user.
const byWhom = "; the API server's audit log has who did it"

// observer records what the watch delivers about blocks as events; it queues nothing. What happens while no reconciler leads is
// in the audit log alone.
func observer(recorder events.EventRecorder) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ queue) {
			was, isBlock := e.ObjectOld.(*shipper.RolloutBlock)
			is, stillBlock := e.ObjectNew.(*shipper.RolloutBlock)
			if isBlock && stillBlock && was.UID == is.UID {
				report.Emit(recorder, is, weakened(was, is))
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) {
			if b, isBlock := e.Object.(*shipper.RolloutBlock); isBlock {
				report.Emit(recorder, b, []report.Event{lifted(b)})
			}
		},
	}
}

// weakened is that a block stops less than before. Of events alike the API keeps the first note for some minutes, so that each
// list of fields is an action of its own.
func weakened(was, is *shipper.RolloutBlock) []report.Event {
	fields := strings.Join(rules.Weakened(&was.Spec, &is.Spec), ", ")
	if fields == "" {
		return nil
	}
	return []report.Event{{
		Type: corev1.EventTypeWarning, Reason: "RolloutBlockWeakened", Action: "Update of " + fields,
		Note: fmt.Sprintf("the block of %s was changed and stops less now: %s%s", authors(is), fields, byWhom),
	}}
}

func lifted(b *shipper.RolloutBlock) report.Event {
	return report.Event{
		Type: corev1.EventTypeWarning, Reason: "RolloutBlockLifted", Action: "Delete",
		Note: fmt.Sprintf("the block of %s was deleted%s: %s", authors(b), byWhom, b.Spec.Message),
	}
}

// authors are the author that the block names, and the user who created it.
func authors(b *shipper.RolloutBlock) string {
	creator := b.Annotations[shipper.RolloutBlockCreatedByAnnotation]
	account, _ := strings.CutPrefix(creator, "system:serviceaccount:") // authors are stamped as namespace/name of those
	if creator != "" && creator != b.Spec.Author.Name && strings.Replace(account, ":", "/", 1) != b.Spec.Author.Name {
		return fmt.Sprintf("%s (created by %s)", b.Spec.Author.Name, creator)
	}
	return b.Spec.Author.Name
}
