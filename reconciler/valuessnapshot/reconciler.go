// SPDX-License-Identifier: Apache-2.0

package valuessnapshot

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/values"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/queue"
	"shipper.dev/shipper/reconciler/retry"
)

// Releases say what they have values from. ConfigMaps and Secrets of users are read, and Secrets made, where the ClusterRole
// shipper-values-keeper is bound by who owns the namespace; nothing of that is granted here.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=releases,verbs=get;list;watch
// Values that cannot be kept are reported by an event.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Options for SetupWithManager.
type Options struct {
	// Values keep what is held.
	Values *Values
	// Workers is how many Releases are worked on at the same time.
	Workers int
	// Queue makes the queue of what waits to be worked on. Nil: first come, first served.
	Queue queue.New[ctrl.Request]
}

// Reconciler keeps the values of Releases as soon as there is a Release, also one that is not rolled out yet.
type Reconciler struct {
	client   client.Client
	values   *Values
	recorder events.EventRecorder
	retrier  *retry.Retrier[ctrl.Request]
}

// SetupWithManager makes the reconciler run with mgr.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	r := &Reconciler{client: mgr.GetClient(), values: o.Values, recorder: mgr.GetEventRecorder(fleet.UserAgent),
		retrier: retry.NewRetrier(retry.Limiter[ctrl.Request]()),
	}
	made := predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			rel, ok := e.Object.(*shipper.Release)
			return ok && len(rel.Spec.Environment.ValuesFrom) > 0
		},
		UpdateFunc: func(event.UpdateEvent) bool { return false }, // environments do not change
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("valuessnapshot").
		For(&shipper.Release{}, builder.WithPredicates(made)).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers, RateLimiter: retry.Limiter[ctrl.Request](), NewQueue: o.Queue}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up pinned: %w", err)
	}
	return nil
}

// Reconcile keeps the values of one Release.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	rel := &shipper.Release{}
	if err := r.client.Get(ctx, req.NamespacedName, rel); err != nil {
		return r.retrier.Persisted(req, client.IgnoreNotFound(err))
	}
	if rel.DeletionTimestamp != nil {
		return r.retrier.Persisted(req, nil)
	}
	_, err := r.values.Of(ctx, values.PinnedOf(rel))
	if known, ok := errors.AsType[*chart.Error](err); ok {
		report.Emit(r.recorder, rel, []report.Event{{
			Type: corev1.EventTypeWarning, Reason: "ValuesNotKept", Action: "Keep", Note: known.Message,
		}})
	}
	if err == nil {
		err = r.values.settled(ctx, rel)
	}
	return r.retrier.Result(req, err)
}
