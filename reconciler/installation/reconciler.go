// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fairqueue"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/targets"
	"shipper.dev/shipper/reconciler/traffic"
)

// InstallationTargets are written by the release reconciler; this one writes their finalizer and their status.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=installationtargets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=installationtargets/status,verbs=patch
// Releases hold the chart's digest, and the chart itself for targets of older installations; and what is asked of hooks.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=releases,verbs=get;list;watch
// TrafficTargets decide the initial selector of a Service.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=traffictargets,verbs=get;list;watch
// A cluster whose Cluster object is gone is given up.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=clusters,verbs=get;list;watch
// Changed conditions are reported by events.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Options for SetupWithManager.
type Options struct {
	// Fleet is the connections to application clusters.
	Fleet *fleet.Fleet
	// Renderer renders charts.
	Renderer Renderer
	// Clock is the time of transitions.
	Clock clock.PassiveClock
	// Workers is how many targets are worked on at the same time.
	Workers int
	// Registry is where metrics go. Nil: nowhere.
	Registry prometheus.Registerer
	// Queue makes the queue of what waits to be worked on. Nil: first come, first served.
	Queue fairqueue.NewQueue
	// InitialSelector returns the initial selector of a Service. Nil: Services always select by label.
	InitialSelector traffic.InitialSelector
	// Slots bound how many of the Workers are in one cluster. Nil: all of them may be.
	Slots *fleet.Slots
}

// Reconciler converges InstallationTargets.
type Reconciler struct {
	client          client.Client
	live            client.Reader
	fleet           *fleet.Fleet
	renderer        Renderer
	clock           clock.PassiveClock
	recorder        events.EventRecorder
	retries         *fleet.Retries
	drifts          driftMemories
	throttle        *report.Throttle
	slots           *fleet.Slots
	renders         *backgroundRenderer
	initialSelector traffic.InitialSelector
	// corrected counts what was corrected.
	corrected *prometheus.CounterVec
}

// SetupWithManager makes the reconciler run with mgr.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	r := &Reconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), fleet: o.Fleet, renderer: o.Renderer, clock: o.Clock,
		recorder: mgr.GetEventRecorder(fleet.UserAgent), retries: fleet.NewRetries(), throttle: report.NewThrottle(),
		corrected: newDriftCounter(),
		slots:     o.Slots, renders: newBackgroundRenderer(), initialSelector: o.InitialSelector,
	}
	if o.Registry != nil {
		if err := o.Registry.Register(r.corrected); err != nil {
			return fmt.Errorf("registering the metric of drift: %w", err)
		}
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	// No predicate on the own kind: a pass that read the status as it was before its last write is put right by that
	// write's event.
	err := ctrl.NewControllerManagedBy(mgr).
		Named("installation").
		For(&shipper.InstallationTarget{}).
		Watches(&shipper.Release{}, &handler.EnqueueRequestForObject{},
			builder.WithPredicates(predicate.Or(ordered(), targets.ReleaseGone))).
		WatchesRawSource(o.Fleet.WatchMembers(r.targetsIn)).
		WatchesRawSource(o.Fleet.WatchInstalled(r.installedChanged)).
		WatchesRawSource(o.Fleet.WatchHealth(r.healthChanged)).
		WatchesRawSource(o.Fleet.WatchEdits(r.edited)).
		Watches(&shipper.Application{}, handler.EnqueueRequestsFromMapFunc(r.targetsOf), otherPolicy()).
		WatchesRawSource(o.Fleet.WatchInstalled(hookChanged)).
		WatchesRawSource(o.Fleet.Watch(&corev1.ConfigMap{}, anchorChanged)).
		WatchesRawSource(o.Fleet.WatchClaims(r.claimChanged)).
		WatchesRawSource(o.Slots.Source()).
		WatchesRawSource(r.renders.source()).
		WatchesRawSource(o.Fleet.Watch(namespace, r.namespaceChanged)).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers, RateLimiter: fleet.RateLimiter(), NewQueue: o.Queue}).
		Complete(o.Slots.Detach(r))
	if err != nil {
		return fmt.Errorf("setting up installation: %w", err)
	}
	return nil
}

// Reconcile converges one InstallationTarget in all its clusters.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	pass := r.slots.Begin(req)
	defer pass.End()
	it := &shipper.InstallationTarget{}
	if err := r.client.Get(ctx, req.NamespacedName, it); err != nil {
		r.drifts.forget(req.NamespacedName)
		r.throttle.Forget(req.NamespacedName)
		r.renders.forget(req)
		return r.retries.Persisted(req, client.IgnoreNotFound(err))
	}
	leaving, err := r.leaves(ctx, it)
	if err != nil {
		return r.retries.Persisted(req, err)
	}
	if it.DeletionTimestamp != nil && !controllerutil.ContainsFinalizer(it, shipper.InstallationFinalizer) {
		return ctrl.Result{}, nil
	}
	if !leaving {
		if err := r.remember(ctx, it); err != nil {
			return r.retries.Persisted(req, err)
		}
	}
	if !pass.Acquire(clusterNames(it)) {
		return ctrl.Result{}, nil
	}
	outcomes, broken := r.work(ctx, it, leaving, pass)
	report.Emit(r.recorder, it, notes(outcomes)) // of what was done; the next pass does not do it again
	rendering := errors.Is(broken, errRendering)
	if rendering {
		broken = nil // clusters say so
	}

	was := it.DeepCopy()
	it.Status = status(was, outcomes, broken, r.clock.Now())
	haste := report.Later
	if !rendering {
		haste = urgencyOf(it.Spec.CanOverride, was.Status, it.Status)
	}
	held := r.throttle.DelayFor(haste, was, it, r.clock.Now())
	if held == 0 {
		changed, err := report.PatchStatus(ctx, r.client, it, was)
		if err != nil {
			return r.retries.Persisted(req, fmt.Errorf("writing the status of InstallationTarget %s: %w", req, err))
		}
		if changed {
			report.Emit(r.recorder, it, changes(was, it))
		}
	}
	if rendering { // another pass is made when that is done
		return ctrl.Result{RequeueAfter: held}, nil
	}
	if held == 0 && leaving && allGone(outcomes) {
		return r.retries.Persisted(req, r.release(ctx, it))
	}
	result, err := r.retries.Outcome(ctx, req, failures(outcomes, broken)...)
	result.RequeueAfter = report.Sooner(report.Sooner(result.RequeueAfter, held), later(outcomes))
	return sooner(result, outcomes, r.clock.Now()), err
}
