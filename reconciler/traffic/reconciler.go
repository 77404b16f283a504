// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fairqueue"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/targets"
)

// TrafficTargets are written by the release reconciler; this one writes their status, and removes the finalizer of those whose
// Release is gone.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=traffictargets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=traffictargets/status,verbs=patch
// The weight of a Release that is going counts no longer.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=releases,verbs=get;list;watch
// What of a Release is being removed shall have no traffic.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=installationtargets,verbs=get;list;watch
// A Release that is no Pods needs no Service.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=capacitytargets,verbs=get;list;watch
// Events about a Service without endpoints are recorded on the Application, too.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=applications,verbs=get;list;watch
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
	// SelectByRelease lets the Service of an Application select by Release while exactly one weighs anything. False: it selects by label
	// always,
	// as other Shippers know it.
	SelectByRelease bool
	// Slots bound how many of the Workers are in one cluster. Nil: all of them may be.
	Slots *fleet.Slots
	// Registry is where metrics go. Nil: nowhere.
	Registry prometheus.Registerer
}

// Reconciler converges TrafficTargets.
type Reconciler struct {
	client          client.Client
	fleet           *fleet.Fleet
	clock           clock.PassiveClock
	recorder        events.EventRecorder
	retries         *fleet.Retries
	throttle        *report.Throttle
	selectByRelease bool
	slots           *fleet.Slots
	outages         *outages
}

// SetupWithManager makes the reconciler run with mgr.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	r := &Reconciler{
		client: mgr.GetClient(), fleet: o.Fleet, clock: o.Clock,
		recorder: mgr.GetEventRecorder(fleet.UserAgent), retries: fleet.NewRetries(),
		throttle: report.NewThrottle(), selectByRelease: o.SelectByRelease, slots: o.Slots,
		outages: newOutages(),
	}
	if o.Registry != nil {
		if err := o.Registry.Register(r.outages); err != nil {
			return fmt.Errorf("registering the metric of endpoints: %w", err)
		}
	}
	// No predicate on the own kind: a pass that read the status as it was before its last write is put right by that
	// write's event.
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	err := ctrl.NewControllerManagedBy(mgr).
		Named("traffic").
		For(&shipper.TrafficTarget{}).
		Watches(&shipper.TrafficTarget{}, handler.EnqueueRequestsFromMapFunc(r.siblings), changed).
		Watches(&shipper.CapacityTarget{}, handler.EnqueueRequestsFromMapFunc(r.siblings), builder.WithPredicates(podsChanged)).
		Watches(&shipper.Release{}, handler.EnqueueRequestsFromMapFunc(r.siblings), builder.WithPredicates(comesOrGoes)).
		Watches(&shipper.InstallationTarget{}, handler.EnqueueRequestsFromMapFunc(r.siblings), builder.WithPredicates(comesOrGoes)).
		WatchesRawSource(o.Fleet.WatchMembers(r.targetsIn)).
		WatchesRawSource(o.Fleet.Watch(&corev1.Pod{}, r.ofApplication)).
		WatchesRawSource(o.Fleet.Watch(&corev1.Service{}, r.ofApplication)).
		WatchesRawSource(o.Fleet.Watch(&discoveryv1.EndpointSlice{}, r.ofApplication)).
		WatchesRawSource(o.Fleet.WatchClaims(r.ofApplication)).
		WatchesRawSource(o.Slots.Source()).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers, RateLimiter: fleet.RateLimiter(), NewQueue: o.Queue}).
		Complete(o.Slots.Detach(r))
	if err != nil {
		return fmt.Errorf("setting up traffic: %w", err)
	}
	return nil
}

// Reconcile converges one TrafficTarget in all its clusters.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	pass := r.slots.Begin(req)
	defer pass.End()
	tt := &shipper.TrafficTarget{}
	if err := r.client.Get(ctx, req.NamespacedName, tt); err != nil {
		r.throttle.Forget(req.NamespacedName)
		r.outages.forget(req.NamespacedName)
		return r.retries.Persisted(req, client.IgnoreNotFound(err))
	}
	if ended, err := targets.End(ctx, r.client, tt); err != nil || ended {
		r.outages.forget(req.NamespacedName)
		return r.retries.Persisted(req, err)
	}
	if !pass.Acquire(clusterNames(tt.Spec.Clusters)) {
		return ctrl.Result{}, nil
	}
	family, broken := r.application(ctx, tt)
	var sights []observation
	var grace time.Duration
	if broken == nil {
		sights = make([]observation, len(tt.Spec.Clusters))
		fleet.Each(len(sights), fleet.Parallel, func(i int) {
			defer pass.Release(tt.Spec.Clusters[i].Name)
			sights[i] = r.work(ctx, tt, tt.Spec.Clusters[i], family)
		})
		grace = r.outages.observe(tt, sights, family.served, r.clock.Now())
	}
	was := tt.DeepCopy()
	tt.Status = status(was, sights, broken, r.clock.Now())
	wait := r.throttle.Delay(was, tt, said(was, nil), said(tt, sights), r.clock.Now())
	if wait == 0 {
		changed, err := report.PatchStatus(ctx, r.client, tt, was)
		if err != nil {
			return r.retries.Persisted(req, fmt.Errorf("writing the status of TrafficTarget %s: %w", req, err))
		}
		if changed {
			report.Emit(r.recorder, tt, changes(was, tt))
			r.warn(ctx, tt, outageEvents(was, tt))
		}
	}
	result, err := r.retries.Outcome(ctx, req, failures(sights, broken)...)
	result.RequeueAfter = report.Sooner(report.Sooner(result.RequeueAfter, wait), grace)
	return result, err
}

// clusterNames of a target.
func clusterNames(list []shipper.ClusterTrafficTarget) []string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = list[i].Name
	}
	return out
}
