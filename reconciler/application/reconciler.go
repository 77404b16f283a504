// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fairqueue"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/release/history"
	"shipper.dev/shipper/reconciler/release/predicates"
	"shipper.dev/shipper/reconciler/retry"
)

// Applications are users'; this one writes annotations, status and, when a rollout is aborted, the template.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=applications,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=applications/status,verbs=patch
// Releases are made of templates, brought back to their last step on abort, and deleted when they are superseded or
// history is long enough.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=releases,verbs=get;list;watch;create;patch;delete
// Targets tell whether a Release still serves; blocks hold everything back.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=installationtargets;capacitytargets,verbs=get;list;watch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=traffictargets;rolloutblocks,verbs=get;list;watch
// What happened is told as events.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const (
	// name of the reconciler, in logs, metrics and indexes.
	name = "application"
	// defaultWorkers is how many Applications are worked on at the same time.
	defaultWorkers = 4
)

// Options for SetupWithManager.
type Options struct {
	// GlobalBlocksNamespace is the one whose RolloutBlocks bear on every namespace.
	GlobalBlocksNamespace string
	// Histories reads what there is of an Application.
	Histories *history.Reader
	// Writes is what reconcilers of Applications and of Releases know of each other's writes. Nil: nobody else writes.
	Writes *history.WriteTracker
	// Clock tells the time of transitions.
	Clock clock.PassiveClock
	// Workers is how many Applications are worked on at the same time; 4 when it is 0.
	Workers int
	// Queue makes the queue of what waits to be worked on. Nil: first come, first served.
	Queue fairqueue.NewQueue
}

// Reconciler makes Releases of Applications.
type Reconciler struct {
	client    client.Client
	live      client.Reader
	histories *history.Reader
	writes    *history.WriteTracker
	global    string
	clock     clock.PassiveClock
	recorder  events.EventRecorder
	retrier   *retry.Retrier
	throttle  *report.Throttle
}

// SetupWithManager makes the reconciler run with mgr.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.Writes == nil {
		o.Writes = history.NewWriteTracker()
	}
	r := &Reconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), histories: o.Histories, writes: o.Writes, global: o.GlobalBlocksNamespace,
		clock: o.Clock, recorder: mgr.GetEventRecorder(fleet.UserAgent), retrier: retry.NewRetrier(),
		throttle: report.NewThrottle(),
	}
	// No predicate on the kind whose status is written here: a pass that read it as it was before its last write is put
	// right by that write's event.
	err := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&shipper.Application{}).
		Watches(&shipper.Release{}, predicates.EnqueueForApplication()).
		Watches(&shipper.InstallationTarget{}, predicates.EnqueueForApplication()).
		Watches(&shipper.CapacityTarget{}, predicates.EnqueueForApplication()).
		Watches(&shipper.TrafficTarget{}, predicates.EnqueueForApplication()).
		Watches(&shipper.RolloutBlock{}, predicates.EnqueueForBlock(r.client, r.global), predicates.BlockActiveChanged()).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers, RateLimiter: retry.RateLimiter(), NewQueue: o.Queue}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up application: %w", err)
	}
	return nil
}

// Reconcile takes one Application a step further.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	now := metav1.NewTime(r.clock.Now())
	s, err := r.observe(ctx, req, now)
	if s == nil || err != nil {
		return r.retrier.Result(req, err)
	}
	p := makePlan(s, now)
	if p.acts() {
		if len(p.remove) > 0 { // what cannot be undone is not decided by what was so a while ago
			r.writes.Distrust(req.NamespacedName)
		}
		if s, err = r.observeLive(ctx, req, now); s == nil || err != nil {
			return r.retrier.Result(req, err)
		}
		p = makePlan(s, now)
	}
	if p.abort != nil {
		return r.retrier.Result(req, r.abort(ctx, s, p, now))
	}
	acted := r.apply(ctx, s, p, now)
	wait, err := r.persist(ctx, s.app, status(s, p, acted, now), now)
	result, err := r.retrier.Result(req, acted.err(), err)
	result.RequeueAfter = report.Sooner(result.RequeueAfter, wait)
	return result, err
}
