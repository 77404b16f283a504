// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/retry"
)

// chartKeeper stores the chart of each Release. A Release whose repository gave no digest is pinned to the archive that was stored for it.
type chartKeeper struct {
	set
	charts   *Charts
	recorder events.EventRecorder
	retrier  *retry.Retrier[reconcile.Request]
}

// newSlowRetrier spaces passes over concurrent writes.
func newSlowRetrier() *retry.Retrier[reconcile.Request] {
	return retry.NewRetrier(retry.SlowLimiter[reconcile.Request]())
}

func (r *chartKeeper) setup(mgr ctrl.Manager, o Options) error {
	deleted := predicate.TypedFuncs[client.Object]{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return e.ObjectNew.GetDeletionTimestamp() != nil },
	}
	pinned := predicate.TypedFuncs[client.Object]{
		UpdateFunc: func(e event.UpdateEvent) bool { return digestOf(e.ObjectOld) != digestOf(e.ObjectNew) },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("snapshot").
		For(&shipper.Release{}, builder.WithPredicates(pinned)).
		WatchesMetadata(metadata(chartSnapshot), handler.EnqueueRequestsFromMapFunc(r.madeFrom), builder.WithPredicates(deleted)).
		WithOptions(o.controller(retry.SlowLimiter[reconcile.Request]())).
		Complete(r)
}

// Reconcile stores the chart of one Release.
func (r *chartKeeper) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	rel := &shipper.Release{}
	if err := r.client.Get(ctx, req.NamespacedName, rel); err != nil {
		return r.retrier.Persisted(req, client.IgnoreNotFound(err))
	}
	if rel.DeletionTimestamp != nil || rel.Spec.Environment.Resources != nil { // it has no chart
		return r.retrier.Persisted(req, nil)
	}
	complete, err := r.isStored(ctx, rel)
	if complete || err != nil {
		return r.retrier.Persisted(req, err)
	}
	return r.result(req, rel, r.store(ctx, rel))
}

// result is the result of a pass that ended with err. An event reports a chart that cannot be stored.
func (r *chartKeeper) result(req ctrl.Request, rel *shipper.Release, err error) (ctrl.Result, error) {
	if Transient(err) { // the event of the concurrent write may have come before
		return r.retrier.Again(req), nil
	}
	r.retrier.Forget(req)
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

// isStored reports whether the cache has every snapshot of a Release's chart, with this Release among the owners.
func (r *chartKeeper) isStored(ctx context.Context, rel *shipper.Release) (bool, error) {
	digest := digestOf(rel)
	if digest == "" {
		return false, nil
	}
	head := metadata(chartSnapshot)
	key := client.ObjectKey{Namespace: rel.Namespace, Name: shipper.ChartSnapshotName(digest)}
	if stays, err := r.stays(ctx, key, head, rel); !stays {
		return false, err
	}
	count, err := strconv.ParseInt(head.Labels[shipper.ChartPartsLabel], 10, 32)
	if err != nil {
		return false, nil // the label was removed: ask the API server
	}
	for n := int32(1); n <= int32(count); n++ {
		key.Name = shipper.ChartSnapshotPartName(digest, n)
		if stays, err := r.stays(ctx, key, metadata(chartSnapshot), head); !stays {
			return false, err
		}
	}
	return true, nil
}

// stays reads an object from the cache and reports whether it is there, is not being deleted, and belongs to an owner.
func (r *chartKeeper) stays(ctx context.Context, key client.ObjectKey, o *metav1.PartialObjectMetadata, owner metav1.Object) (bool, error) {
	err := r.client.Get(ctx, key, o)
	return err == nil && o.DeletionTimestamp == nil && isOwner(o, owner.GetUID()), client.IgnoreNotFound(err)
}

// store writes what is missing: first the head that the Releases own, then the bytes.
func (r *chartKeeper) store(ctx context.Context, rel *shipper.Release) error {
	loaded, err := r.charts.Load(ctx, rel.Namespace, rel.Spec.Environment.Chart, digestOf(rel))
	if err != nil {
		return err
	}
	if digestOf(rel) == "" {
		if err := r.pin(ctx, rel, loaded.Digest()); err != nil {
			return err
		}
	}
	if size := len(loaded.Archive()); size > maxArchive {
		return tooLarge(size)
	}
	head := headOf(rel, loaded)
	if err := r.put(ctx, head, ownedBy("Release", rel)); err != nil {
		return err
	}
	for _, part := range partsOf(head, loaded.Archive()) {
		if err := r.put(ctx, part, ownedBy(chartSnapshot, head)); err != nil {
			return err
		}
	}
	return nil
}

// pin records the archive that a Release, whose repository gave no digest, is made from.
func (r *chartKeeper) pin(ctx context.Context, rel *shipper.Release, digest string) error {
	was := rel.DeepCopy()
	metav1.SetMetaDataAnnotation(&rel.ObjectMeta, shipper.ReleaseChartDigestAnnotation, digest)
	err := r.client.Patch(ctx, rel, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}),
		client.FieldOwner(shipper.FieldOwner))
	if err != nil {
		return fmt.Errorf("pinning it to the digest of its chart: %w", err)
	}
	return nil
}

// madeFrom makes requests for the Releases that are made from a snapshot that is being deleted.
func (r *chartKeeper) madeFrom(ctx context.Context, o client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, owner := range o.GetOwnerReferences() {
		key := client.ObjectKey{Namespace: o.GetNamespace(), Name: owner.Name}
		switch owner.Kind {
		case "Release":
			out = append(out, reconcile.Request{NamespacedName: key})
		case chartSnapshot:
			head := metadata(chartSnapshot)
			if err := r.client.Get(ctx, key, head); err == nil && head.UID == owner.UID {
				out = append(out, r.madeFrom(ctx, head)...)
			}
		}
	}
	return out
}

// digestOf is what a Release's chart is pinned to.
func digestOf(rel client.Object) string {
	return rel.GetAnnotations()[shipper.ReleaseChartDigestAnnotation]
}
