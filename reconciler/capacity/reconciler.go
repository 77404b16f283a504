// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fairqueue"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/targets"
)

// CapacityTargets are written by the release reconciler; this one writes their status, and removes the finalizer of those whose
// Release is gone.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=capacitytargets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=releases,verbs=get;list;watch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=capacitytargets/status,verbs=patch
// Changed conditions are reported by events.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Options for SetupWithManager.
type Options struct {
	// Fleet is the connections to application clusters.
	Fleet *fleet.Fleet
	// Clock is the time of transitions.
	Clock clock.PassiveClock
	// Workers is how many targets are worked on at the same time.
	Workers int
	// Queue makes the queue of what waits to be worked on. Nil: first come, first served.
	Queue fairqueue.NewQueue
	// Slots bound how many of the Workers are in one cluster. Nil: all of them may be.
	Slots *fleet.Slots
}

// Reconciler converges CapacityTargets.
type Reconciler struct {
	client   client.Client
	fleet    *fleet.Fleet
	clock    clock.PassiveClock
	recorder events.EventRecorder
	retries  *fleet.Retries
	throttle *report.Throttle
	slots    *fleet.Slots
}

// SetupWithManager makes the reconciler run with mgr.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	r := &Reconciler{
		client: mgr.GetClient(), fleet: o.Fleet, clock: o.Clock,
		recorder: mgr.GetEventRecorder(fleet.UserAgent), retries: fleet.NewRetries(),
		throttle: report.NewThrottle(), slots: o.Slots,
	}
	// No predicate on the own kind: a pass that read the status as it was before its last write is put right by that
	// write's event.
	err := ctrl.NewControllerManagedBy(mgr).
		Named("capacity").
		For(&shipper.CapacityTarget{}).
		Watches(&shipper.Release{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(targets.ReleaseGone)).
		WatchesRawSource(o.Fleet.WatchMembers(r.targetsIn)).
		WatchesRawSource(o.Fleet.Watch(&appsv1.Deployment{}, fleet.ByReleaseLabel)).
		WatchesRawSource(o.Fleet.Watch(&corev1.Pod{}, fleet.ByReleaseLabel)).
		WatchesRawSource(o.Fleet.WatchClaims(r.claimChanged)).
		WatchesRawSource(o.Slots.Source()).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers, RateLimiter: fleet.RateLimiter(), NewQueue: o.Queue}).
		Complete(o.Slots.Detach(r))
	if err != nil {
		return fmt.Errorf("setting up capacity: %w", err)
	}
	return nil
}

// Reconcile converges one CapacityTarget in all its clusters.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	pass := r.slots.Begin(req)
	defer pass.End()
	ct := &shipper.CapacityTarget{}
	if err := r.client.Get(ctx, req.NamespacedName, ct); err != nil {
		r.throttle.Forget(req.NamespacedName)
		return r.retries.Persisted(req, client.IgnoreNotFound(err))
	}
	if ended, err := targets.End(ctx, r.client, ct); err != nil || ended {
		return r.retries.Persisted(req, err)
	}
	if !pass.Acquire(names(ct.Spec.Clusters)) {
		return ctrl.Result{}, nil
	}
	sights := make([]observation, len(ct.Spec.Clusters))
	fleet.Each(len(sights), fleet.Parallel, func(i int) {
		defer pass.Release(ct.Spec.Clusters[i].Name)
		sights[i] = r.work(ctx, ct, ct.Spec.Clusters[i])
	})
	was := ct.DeepCopy()
	ct.Status = status(was, sights, r.clock.Now())
	wait := r.throttle.Delay(was, ct, said(was), said(ct), r.clock.Now())
	if wait == 0 {
		changed, err := report.PatchStatus(ctx, r.client, ct, was)
		if err != nil {
			return r.retries.Persisted(req, fmt.Errorf("writing the status of CapacityTarget %s: %w", req, err))
		}
		if changed {
			report.Emit(r.recorder, ct, changes(was, ct))
		}
	}
	result, err := r.retries.Outcome(ctx, req, failures(sights)...)
	result.RequeueAfter = report.Sooner(result.RequeueAfter, wait)
	return result, err
}

// names of the clusters of a target.
func names(list []shipper.ClusterCapacityTarget) []string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = list[i].Name
	}
	return out
}
