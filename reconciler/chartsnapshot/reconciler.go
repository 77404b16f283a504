// SPDX-License-Identifier: Apache-2.0

package chartsnapshot

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/queue"
	"shipper.dev/shipper/reconciler/retry"
)

// Snapshots are made, and given to further Releases. The garbage collector deletes them; who may not delete an object may not
// give it an owner more where OwnerReferencesPermissionEnforcement is on.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=chartsnapshots,verbs=get;list;watch;create;patch;delete
// A Release without a digest is pinned to what was kept for it.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=releases,verbs=get;list;watch;patch
// A chart that cannot be kept is reported by an event.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Options for SetupWithManager.
type Options struct {
	// Charts are where charts come from.
	Charts *Charts
	// Workers is how many Releases are worked on at the same time.
	Workers int
	// Queue makes the queue of what waits to be worked on. Nil: first come, first served.
	Queue queue.New[reconcile.Request]
}

// Reconciler keeps the charts of Releases.
type Reconciler struct {
	client   client.Client
	charts   *Charts
	recorder events.EventRecorder
	retries  *retry.Retrier[reconcile.Request]
}

// SetupWithManager makes the reconciler run with mgr.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	r := &Reconciler{client: mgr.GetClient(), charts: o.Charts, recorder: mgr.GetEventRecorder(fleet.UserAgent), retries: newRetrier()}
	going := predicate.TypedFuncs[client.Object]{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return e.ObjectNew.GetDeletionTimestamp() != nil },
	}
	once := predicate.TypedFuncs[client.Object]{
		UpdateFunc: func(e event.UpdateEvent) bool { return digestOf(e.ObjectOld) != digestOf(e.ObjectNew) },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("snapshot").
		For(&shipper.Release{}, builder.WithPredicates(once)).
		WatchesMetadata(kept(), handler.EnqueueRequestsFromMapFunc(r.madeOf), builder.WithPredicates(going)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: o.Workers, RateLimiter: retry.SlowLimiter[reconcile.Request](), NewQueue: o.Queue,
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up snapshot: %w", err)
	}
	return nil
}

// Reconcile keeps the chart of one Release.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	rel := &shipper.Release{}
	if err := r.client.Get(ctx, req.NamespacedName, rel); err != nil {
		return r.retries.Persisted(req, client.IgnoreNotFound(err))
	}
	if rel.DeletionTimestamp != nil || rel.Spec.Environment.Resources != nil { // it has no chart
		return r.retries.Persisted(req, nil)
	}
	whole, err := r.isKept(ctx, rel)
	if whole || err != nil {
		return r.retries.Persisted(req, err)
	}
	return r.outcome(req, rel, r.keep(ctx, rel))
}

// outcome is the result of a pass that ended with err. An event reports a chart that cannot be kept.
func (r *Reconciler) outcome(req ctrl.Request, rel *shipper.Release, err error) (ctrl.Result, error) {
	if transient(err) { // the event of the concurrent write may have come before
		return r.retries.Again(req), nil
	}
	r.retries.Forget(req)
	if err == nil || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return ctrl.Result{}, nil
	}
	report.Emit(r.recorder, rel, []report.Event{{
		Type: corev1.EventTypeWarning, Reason: "ChartNotKept", Action: "Keep",
		Note: fmt.Sprintf("the chart cannot be kept for later: %v", err),
	}})
	if _, large := errors.AsType[tooLarge](err); large {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, fmt.Errorf("keeping the chart of Release %s: %w", req, err)
}

// newRetrier spaces passes over concurrent writes.
func newRetrier() *retry.Retrier[reconcile.Request] {
	return retry.NewRetrier(retry.SlowLimiter[reconcile.Request]())
}

// madeOf are the Releases made of a snapshot that goes.
func (r *Reconciler) madeOf(ctx context.Context, o client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, owner := range o.GetOwnerReferences() {
		key := client.ObjectKey{Namespace: o.GetNamespace(), Name: owner.Name}
		switch owner.Kind {
		case "Release":
			out = append(out, reconcile.Request{NamespacedName: key})
		case "ChartSnapshot":
			head := kept()
			if err := r.client.Get(ctx, key, head); err == nil && head.UID == owner.UID {
				out = append(out, r.madeOf(ctx, head)...)
			}
		}
	}
	return out
}

// kept is a ChartSnapshot without its bytes: only so are they watched.
func kept() *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(shipper.GroupVersion.WithKind("ChartSnapshot"))
	return o
}

// digestOf is what a Release's chart is pinned to.
func digestOf(rel client.Object) string {
	return rel.GetAnnotations()[shipper.ReleaseChartDigestAnnotation]
}
