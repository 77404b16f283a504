// SPDX-License-Identifier: Apache-2.0

// Package rolloutblock writes into each RolloutBlock's status whether it is in effect and who overrides it, and takes a
// block that is gone out of the override annotations that name it, because an override of a block that does not exist
// blocks, and one of a block that was made again is none.
//
// The status is what wakes everybody else when a block comes into effect or ceases to be: this reconciler alone waits for
// the time.
package rolloutblock

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	rules "shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/queue"
	"shipper.dev/shipper/reconciler/retry"
)

// RolloutBlocks are written by people; this one writes their status.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=rolloutblocks,verbs=get;list;watch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=rolloutblocks/status,verbs=patch
// Overrides of blocks that are gone are taken out of annotations.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=applications;releases,verbs=get;list;watch;patch
// Events report added and removed overrides, and a block that is lifted or weakened.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Options for SetupWithManager.
type Options struct {
	// GlobalNamespace is the one whose blocks bear on every namespace.
	GlobalNamespace string
	// Clock reports when blocks come into effect and cease to be.
	Clock clock.PassiveClock
	// Workers is how many blocks are worked on at the same time.
	Workers int
	// Queue makes the queue of what waits to be worked on. Nil: first come, first served.
	Queue queue.New[ctrl.Request]
}

// Reconciler converges RolloutBlocks.
type Reconciler struct {
	client          client.Client
	live            client.Reader
	globalNamespace string
	clock           clock.PassiveClock
	recorder        events.EventRecorder
	retries         *retry.Retrier[ctrl.Request]
}

// SetupWithManager makes the reconciler run with mgr. ctx is needed for the time of the call only.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, o Options) error {
	r := &Reconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), globalNamespace: o.GlobalNamespace,
		clock: o.Clock, recorder: mgr.GetEventRecorder(fleet.UserAgent), retries: retry.NewRetrier(retry.ClusterLimiter[ctrl.Request]()),
	}
	for _, kind := range []client.Object{&shipper.Application{}, &shipper.Release{}} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, kind, byOverride, overrideKeys); err != nil {
			return fmt.Errorf("indexing overrides: %w", err)
		}
	}
	changed := builder.WithPredicates(predicate.AnnotationChangedPredicate{})
	// No predicate on the own kind: a pass that read the status as it was before its last write is put right by that
	// write's event.
	err := ctrl.NewControllerManagedBy(mgr).
		Named("rolloutblock").
		For(&shipper.RolloutBlock{}).
		Watches(&shipper.RolloutBlock{}, observer(r.recorder)).
		Watches(&shipper.Application{}, overriders{}, changed).
		Watches(&shipper.Release{}, overriders{}, changed).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers, RateLimiter: retry.ClusterLimiter[ctrl.Request](), NewQueue: o.Queue}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up rolloutblock: %w", err)
	}
	return nil
}

// Reconcile makes one RolloutBlock's status report whether it is in effect and who overrides it; of one that is gone, it
// cleans what names it.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	by, err := r.observe(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	block := &shipper.RolloutBlock{}
	err = r.client.Get(ctx, req.NamespacedName, block)
	if apierrors.IsNotFound(err) {
		return r.retries.Persisted(req, r.clean(ctx, req.NamespacedName, by))
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading RolloutBlock %s: %w", req, err)
	}
	// A failure to clean overrides delays neither the status nor the next look at the schedule.
	failed := r.sweep(ctx, known{}, by.ofAnother(block))
	look, err := r.writeStatus(ctx, block, by)
	if result, err := r.retries.Persisted(req, errors.Join(failed, err)); err != nil || result.RequeueAfter > 0 {
		return result, err
	}
	return ctrl.Result{RequeueAfter: r.until(look)}, nil
}

// writeStatus writes the status of a block, and returns when to look at it again; the zero time if only an event will
// change it.
func (r *Reconciler) writeStatus(ctx context.Context, block *shipper.RolloutBlock, by namers) (look time.Time, err error) {
	was := block.DeepCopy()
	timing, wrong := rules.When(block, r.clock.Now())
	block.Status = status(block, by, r.globalNamespace, timing, wrong)
	changed, err := report.PatchStatus(ctx, r.client, block, was)
	if err != nil {
		return timing.Look, fmt.Errorf("writing the status of RolloutBlock %s: %w", rules.Name(block), err)
	}
	if changed {
		report.Emit(r.recorder, block, changes(was, block))
	}
	return timing.Look, nil
}

// until is how long it is to a time, but no less than a moment; 0 when there is none.
func (r *Reconciler) until(look time.Time) time.Duration {
	if look.IsZero() {
		return 0
	}
	return max(look.Sub(r.clock.Now()), time.Millisecond)
}
