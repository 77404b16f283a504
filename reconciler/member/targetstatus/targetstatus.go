// SPDX-License-Identifier: Apache-2.0

// Package targetstatus writes the status of targets from what came of the work in their clusters. Nothing else writes it.
package targetstatus

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
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

// Kind is what differs between the kinds of targets. T is a pointer to the target, R what comes of a pass over it in one cluster.
type Kind[T client.Object, R any] interface {
	// Clusters names those that the status is about.
	Clusters(target T) []string
	// Prepare writes what has to be written before any work; ended is true when there is nothing more to do.
	Prepare(ctx context.Context, target T) (ended bool, err error)
	// Report sets the status of target from results by cluster. A result is missing until there was a pass over this generation; then what
	// the status says of the cluster stays, and so does observedGeneration.
	// turned is as report.Turned returns it; again is when to report again; 0 for never.
	Report(target T, results map[string]R, now time.Time) (turned bool, again time.Duration)
	// Events are those about a written status.
	Events(ctx context.Context, was, is T) []Events
	// Finish lets a target go that is gone from all clusters: then ended is true, and no status is written.
	Finish(ctx context.Context, target T, results map[string]R) (ended bool, err error)
	// Forget a target that is gone.
	Forget(key types.NamespacedName)
}

// Events are those about one object.
type Events struct {
	About runtime.Object
	List  []report.Event
}

// Options for SetupWithManager.
type Options[T client.Object, R any] struct {
	// Name of the controller.
	Name string
	// New makes an empty target.
	New func() T
	// Kind is what differs between the kinds of targets, Results what comes of passes.
	Kind    Kind[T, R]
	Results *Results[R]
	// Clock is the time of transitions.
	Clock clock.PassiveClock
	// Workers is how many targets are worked on at the same time.
	Workers int
	// Queue makes the queue. Nil: first come, first served.
	Queue queue.New[reconcile.Request]
}

// Reconciler writes the status of the targets of one kind.
type Reconciler[T client.Object, R any] struct {
	Options[T, R]

	client   client.Client
	recorder events.EventRecorder
	retries  *retry.Retrier[reconcile.Request]
	throttle *report.Throttle
}

// SetupWithManager makes the reconciler run with mgr.
func SetupWithManager[T client.Object, R any](mgr ctrl.Manager, o Options[T, R]) error {
	r := &Reconciler[T, R]{
		Options: o, client: mgr.GetClient(), recorder: mgr.GetEventRecorder(fleet.UserAgent),
		retries: retry.NewRetrier(retry.ClusterLimiter[reconcile.Request]()), throttle: report.NewThrottle(),
	}
	// No predicate on the own kind: a pass that read the status as it was before its last write is put right by that
	// write's event. Targets end with their Release, which has their name.
	gone := predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named(o.Name).
		For(o.New()).
		Watches(&shipper.Release{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(gone)).
		WatchesRawSource(o.Results.Source()).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: o.Workers, RateLimiter: retry.ClusterLimiter[reconcile.Request](), NewQueue: o.Queue,
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", o.Name, err)
	}
	return nil
}

// Reconcile writes the status of one target.
func (r *Reconciler[T, R]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	target := r.New()
	if err := r.client.Get(ctx, req.NamespacedName, target); err != nil {
		if err = client.IgnoreNotFound(err); err == nil {
			r.Results.Forget(req.NamespacedName)
			r.Kind.Forget(req.NamespacedName)
		}
		return r.retries.Persisted(req, err)
	}
	if ended, err := r.Kind.Prepare(ctx, target); err != nil || ended {
		return r.retries.Persisted(req, err)
	}
	results := r.Results.Of(target)
	clusters := r.Kind.Clusters(target)
	if len(results) == 0 && len(clusters) > 0 {
		return r.retries.Persisted(req, nil)
	}
	if ended, err := r.Kind.Finish(ctx, target, results); err != nil || ended {
		return r.retries.Persisted(req, err)
	}
	was, ok := target.DeepCopyObject().(T)
	if !ok {
		return ctrl.Result{}, fmt.Errorf("copying %T %s", target, req)
	}
	now := r.Clock.Now()
	turned, again := r.Kind.Report(target, results, now)
	// Where results are missing, the others are on their way, most often.
	held := r.throttle.DelayFor(turned && complete(results, clusters), was, target, now)
	if held == 0 {
		if err := r.write(ctx, was, target); err != nil {
			return r.retries.Persisted(req, err)
		}
		r.retries.Forget(req)
	}
	return ctrl.Result{RequeueAfter: report.Sooner(held, again)}, nil
}

// write writes the status of a target that was otherwise, and records what changed.
func (r *Reconciler[T, R]) write(ctx context.Context, was, reported T) error {
	is, ok := reported.DeepCopyObject().(T) // a client decodes into it, and results share its memory
	if !ok {
		return fmt.Errorf("copying %T %s/%s", was, was.GetNamespace(), was.GetName())
	}
	changed, err := report.PatchStatus(ctx, r.client, is, was)
	if err != nil {
		return fmt.Errorf("writing the status of %T %s/%s: %w", is, is.GetNamespace(), is.GetName(), err)
	}
	if changed {
		for _, e := range r.Kind.Events(ctx, was, is) {
			report.Emit(r.recorder, e.About, e.List)
		}
	}
	return nil
}

// complete reports whether there is a result of every cluster.
func complete[R any](results map[string]R, clusters []string) bool {
	for _, cluster := range clusters {
		if _, known := results[cluster]; !known {
			return false
		}
	}
	return true
}
