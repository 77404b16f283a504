// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/history"
	"shipper.dev/shipper/reconciler/queue"
	"shipper.dev/shipper/reconciler/retry"
)

// Users write Applications; the reconciler writes annotations, status, its finalizer and, on abort, the template.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=applications,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=applications/status,verbs=patch
// Releases are made of templates, get clusters, are brought back to their last step on abort, and are deleted when they are superseded
// or beyond the history limit.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=releases,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=shipper.booking.com,resources=releases/status,verbs=patch
// Targets are the requests to the reconcilers that write to application clusters.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=installationtargets;capacitytargets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=traffictargets,verbs=get;list;watch;create;patch
// What Applications with resources select is read with the ClusterRole shipper-selector, which administrators bind, and Secrets of it are
// kept with shipper-values-keeper, which the namespace's owner binds; nothing of that is granted here. Reviews ask what users may place.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=resourcesnapshots,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// Approvals open gates.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=approvals,verbs=get;list;watch
// ResourceOverrides are copied into Releases.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=resourceoverrides,verbs=list
// Releases copy the Strategies that Applications take.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=strategies,verbs=get
// Checks are copied into CheckTargets when a step has what it wants.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=checks,verbs=get;list;watch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=checktargets,verbs=get;list;watch;create;patch
// Blocks hold rollouts; clusters are chosen from.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=rolloutblocks;clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Options for SetupWithManager.
type Options struct {
	// Charts count replicas, and are verified.
	Charts Charts
	// GlobalBlocksNamespace is the one whose RolloutBlocks bear on every namespace.
	GlobalBlocksNamespace string
	// SharedChecksNamespace is the one with the Checks that all namespaces share.
	SharedChecksNamespace string
	// UnhealthyAfter is how long a cluster may be not ready and still be chosen by placements.
	UnhealthyAfter time.Duration
	// Histories reads what there is of an Application.
	Histories *history.Reader
	// Content reads what Applications with resources select. Nil: they get no Releases.
	Content Contents
	// Snapshots store it.
	Snapshots Snapshots
	// Clock is the time of transitions.
	Clock clock.PassiveClock
	// Workers is how many Applications are worked on at the same time; 4 when it is 0.
	Workers int
	// Registry is where metrics go. Nil: nowhere.
	Registry prometheus.Registerer
	// Queue makes the queue of requests. Nil: first come, first served.
	Queue queue.New[ctrl.Request]
}

// Reconciler rolls Applications out.
type Reconciler struct {
	client    client.Client
	live      client.Reader
	histories *history.Reader
	charts    Charts
	content   Contents
	snapshots Snapshots
	global    string
	// sharedChecks is the namespace with the Checks that all share.
	sharedChecks string
	// unhealthyAfter is how long a cluster may be not ready and still be picked.
	unhealthyAfter time.Duration
	clock          clock.PassiveClock
	recorder       events.EventRecorder
	retrier        *retry.Retrier[ctrl.Request]
	// releases throttles the statuses of Releases.
	releases *report.Throttle
	// confirmed has the UID of each Application, by its key, of which this process has compared the cache with the API server.
	confirmed sync.Map
	// unseen has, by the key of an Application, the objects that a pass has written and that the cache did not show in time.
	unseen sync.Map
	// finished has the version at which an Application was let go, by its key: the cache may show that for a moment longer.
	finished sync.Map
	metrics  *metrics
	// since is the time of the first pass.
	since func() time.Time
}

// Reconcile takes one Application a step further.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	p := &pass{Reconciler: r, now: metav1.NewTime(r.clock.Now())}
	if err := p.resume(ctx, req); err != nil {
		return r.retrier.Result(req, err)
	}
	wait, errs := p.run(ctx, req)
	errs = append(errs, p.awaitCache(ctx, req))
	result, err := r.retrier.Result(req, errs...)
	result.RequeueAfter = report.Sooner(result.RequeueAfter, wait)
	return result, err
}

// pass is one pass over one Application.
type pass struct {
	*Reconciler
	now metav1.Time
	// written are empty objects with the kind and the name of each object that this pass has written.
	written []client.Object
}

// run returns how long a status waits that is held back, and the errors that were met; some may be nil.
func (r *pass) run(ctx context.Context, req ctrl.Request) (wait time.Duration, errs []error) {
	s, err := r.observe(ctx, req)
	if s == nil || err != nil {
		return 0, []error{err}
	}
	recorded, unrecorded := r.recordContent(ctx, s)
	if recorded { // the events of these writes bring the next pass
		return 0, []error{unrecorded}
	}
	t, p := planTemplate(s, r.now), releasesPlan{}
	if !t.restoring {
		p = planReleases(s, r.now)
	}
	if t.acts() || p.writes() {
		if err := r.confirm(ctx, s, t.acts() || len(p.remove) > 0 || p.progress.Abort); err != nil {
			return 0, []error{unrecorded, err}
		}
	}
	if t.abort != nil {
		if err := r.permitReturn(ctx, s, t.abort); err != nil {
			return s.content.again, []error{unrecorded, repeated(err), r.persistApplication(ctx, s.app, heldStatus(s, r.now))}
		}
		return 0, []error{unrecorded, r.abort(ctx, s, t)}
	}
	acted := r.applyTemplate(ctx, s, t)
	wait = s.content.again
	errs = []error{
		unrecorded, repeated(acted.err()), repeated(s.content.err), r.persistApplication(ctx, s.app, applicationStatus(s, t, acted, r.now)),
	}
	// The events of these writes bring the next pass, which sees them. A return that failed writes nothing by the position it was to leave.
	if t.restoring || t.back != nil || t.acts() && acted.err() == nil {
		return wait, errs
	}
	errs = append(errs, r.ownContent(ctx, s), r.setOwners(ctx, s))
	done := r.applyReleases(ctx, s, p)
	if done.moved {
		return wait, append(errs, done.errs()...)
	}
	held, more := r.reportReleases(ctx, s, p, done)
	return report.Sooner(wait, report.Sooner(held, p.progress.Again)), append(append(errs, more...), done.errs()...)
}
