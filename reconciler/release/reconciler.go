// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/reconciler/fairqueue"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/release/history"
	"shipper.dev/shipper/reconciler/retry"
)

// Releases are made by the application reconciler; this one writes the choice of clusters and who signed the chart
// into annotations, and status.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=releases,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=releases/status,verbs=patch
// Targets are what it asks of the reconcilers that work in application clusters.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=installationtargets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=capacitytargets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=traffictargets,verbs=get;list;watch;create;patch
// Applications say which Releases belong together; blocks hold rollouts back; clusters are chosen from.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=applications;rolloutblocks;clusters,verbs=get;list;watch
// What happened is told as events.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Charts tell who signed the chart of a Release, and how many Pods it has in a place when all of it runs.
type Charts interface {
	// Replicas fetches and renders the Release's chart. Errors are *chart.Error, or the context's.
	Replicas(ctx context.Context, rel *shipper.Release, in chart.Place) (int32, error)
	// Verify fails unless whom the Release demands signed the archive that it is pinned to. Errors are as those of Replicas.
	Verify(ctx context.Context, rel *shipper.Release) (shipper.ChartSignature, error)
}

// Options for SetupWithManager.
type Options struct {
	// Charts count replicas, and are verified.
	Charts Charts
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

// Reconciler rolls Releases out.
type Reconciler struct {
	client    client.Client
	histories *history.Reader
	writes    *history.WriteTracker
	charts    Charts
	global    string
	clock     clock.PassiveClock
	recorder  events.EventRecorder
	retrier   *retry.Retrier
	throttle  *report.Throttle
}

// Reconcile takes all Releases of one Application a step further.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	now := metav1.NewTime(r.clock.Now())
	s, err := r.observe(ctx, req)
	if s == nil || err != nil {
		return r.retrier.Result(req, err)
	}
	p := makePlan(s, now)
	if p.writes() {
		if s, err = r.observeLive(ctx, s, now); s == nil || err != nil {
			return r.retrier.Result(req, err)
		}
		p = makePlan(s, now)
	}
	done := r.apply(ctx, s, p)
	wait, errs := r.report(ctx, s, p, done, now)
	result, err := r.retrier.Result(req, append(errs, done.errs()...)...)
	result.RequeueAfter = report.Sooner(result.RequeueAfter, wait)
	return result, err
}
