// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

type requests = workqueue.TypedRateLimitingInterface[ctrl.Request]

// changes derives events from changes of Releases, and makes requests for the Notifications that ask for them.
func (r *Reconciler) changes() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q requests) {
			if rel, ok := e.Object.(*shipper.Release); ok {
				r.queue(ctx, q, Transitions(nil, rel), e.IsInInitialList)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requests) {
			was, ok1 := e.ObjectOld.(*shipper.Release)
			is, ok2 := e.ObjectNew.(*shipper.Release)
			if ok1 && ok2 {
				r.queue(ctx, q, Transitions(was, is), false)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q requests) {
			rel, ok := e.Object.(*shipper.Release)
			if !ok || rel.DeletionTimestamp != nil {
				return
			}
			gone := rel.DeepCopy() // it had no finalizer, or its deletion was not seen
			gone.DeletionTimestamp = &metav1.Time{Time: r.clock.Now()}
			r.queue(ctx, q, Transitions(rel, gone), false)
		},
	}
}

// queue puts events into outboxes. Those of Releases that were there before this leader began are put only where they may not have been
// delivered before.
func (r *Reconciler) queue(ctx context.Context, q requests, all []Event, before bool) {
	if len(all) == 0 {
		return
	}
	notifications, err := r.notifications(ctx, all[0].Namespace)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the Notifications of a namespace", "namespace", all[0].Namespace)
		return
	}
	if len(notifications) == 0 {
		return
	}
	now := r.clock.Now()
	of := sync.OnceValue(func() labels.Set { return r.labels(ctx, all[0]) })
	for i := range notifications {
		n := &notifications[i]
		b := r.outboxes.of(n)
		added := false
		for _, e := range all {
			if !wants(n, e, of) || before && e.Time.Before(since(n)) {
				continue
			}
			if e.Time.IsZero() {
				e.Time = now
			}
			added = true
			if !b.put(e, now) {
				r.results.WithLabelValues("dropped").Inc()
			}
		}
		if added {
			q.Add(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(n)})
		}
	}
}

// since is the time from which events may not have been delivered. Objects have times in whole seconds.
func since(n *shipper.Notification) time.Time {
	if t := n.Status.DeliveredUpToTime; t != nil && t.Add(-overlap).After(n.CreationTimestamp.Time) {
		return t.Add(-overlap)
	}
	return n.CreationTimestamp.Time
}

// notifications are those of a namespace, and those of Shipper's own.
func (r *Reconciler) notifications(ctx context.Context, namespace string) ([]shipper.Notification, error) {
	var out []shipper.Notification
	for _, each := range slices.Compact([]string{namespace, r.namespace}) {
		var list shipper.NotificationList
		if err := r.client.List(ctx, &list, client.InNamespace(each)); err != nil {
			return nil, err
		}
		out = append(out, list.Items...)
	}
	return out, nil
}

// labels are those of the Application of an event; none when it is gone.
func (r *Reconciler) labels(ctx context.Context, e Event) labels.Set {
	var app shipper.Application
	if err := r.client.Get(ctx, types.NamespacedName{Namespace: e.Namespace, Name: e.Application}, &app); err != nil {
		return nil
	}
	return app.Labels
}

// wants reports whether a Notification asks for an event of an Application with labels.
func wants(n *shipper.Notification, e Event, of func() labels.Set) bool {
	words := n.Spec.Events
	if len(words) == 0 {
		words = shipper.DefaultNotificationEvents()
	}
	if !slices.Contains(words, e.Word) {
		return false
	}
	if n.Spec.Applications == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(n.Spec.Applications)
	return err == nil && selector.Matches(of())
}
