// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/values"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/retry"
)

// valuesKeeper stores the values of each Release, also of one that is not rolled out yet.
type valuesKeeper struct {
	client   client.Client
	values   *Values
	recorder events.EventRecorder
	retrier  *retry.Retrier[ctrl.Request]
}

func (r *valuesKeeper) setup(mgr ctrl.Manager, o Options) error {
	created := predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			rel, ok := e.Object.(*shipper.Release)
			return ok && len(rel.Spec.Environment.ValuesFrom) > 0
		},
		UpdateFunc: func(event.UpdateEvent) bool { return false }, // environments do not change
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("valuessnapshot").
		For(&shipper.Release{}, builder.WithPredicates(created)).
		WithOptions(o.controller(retry.Limiter[ctrl.Request]())).
		Complete(r)
}

// Reconcile stores the values of one Release.
func (r *valuesKeeper) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
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
		err = r.values.checkOwner(ctx, rel)
	}
	return r.retrier.Result(req, err)
}
