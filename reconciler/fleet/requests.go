// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const (
	// WorkTimeout bounds what a reconciler does in one cluster in one pass.
	WorkTimeout = time.Minute
	// lastRetry is the longest time between two retries.
	lastRetry = 30 * time.Second
	// recheck is the interval of checks for changes that no event reports.
	recheck = 2 * time.Minute
)

// RateLimiter spaces the retries of a request: 100 ms, doubled up to half a minute.
func RateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](100*time.Millisecond, lastRetry)
}

// Pending reports whether err only means that a cluster is being connected to for the first time.
func Pending(err error) bool {
	var connection *Error
	return errors.As(err, &connection) && connection.Pending
}

// Keeps reports whether a cluster's conditions stay as they are when err is met: it is being connected to for the first time, or
// another installation reported that it works and this one has no usable credentials yet.
func Keeps(err error, conditions []shipper.Condition) bool {
	if len(conditions) == 0 {
		return false
	}
	var connection *Error
	return errors.As(err, &connection) &&
		(connection.Pending || connection.Untried && shipper.ConditionTrue(conditions, shipper.TargetOperational))
}

// Retries makes the results of passes. It is safe for concurrent use.
type Retries struct {
	limiter workqueue.TypedRateLimiter[reconcile.Request]
}

// NewRetries returns Retries for one reconciler.
func NewRetries() *Retries {
	return &Retries{limiter: RateLimiter()}
}

// Outcome is the result of a pass over req with these errors, all of which are in a status: a retry, later
// each time, when any is worth one, a look much later when any needs one, and otherwise nothing, because an event
// will come.
func (r *Retries) Outcome(ctx context.Context, req ctrl.Request, met ...error) (ctrl.Result, error) {
	result := ctrl.Result{}
	retry := false
	for _, err := range met {
		switch _, remedy := Classify(err); remedy {
		case Retry:
			retry = true
			log.FromContext(ctx).V(1).Info("Trying again", "reason", err.Error())
		case Recheck:
			result.RequeueAfter = recheck
		case Wait:
		}
	}
	if retry {
		return ctrl.Result{RequeueAfter: r.limiter.When(req)}, nil
	}
	r.limiter.Forget(req)
	return result, nil
}

// Persisted is what a pass over req returns that ends with writes to the management cluster, of which err is what came: a retry, later
// each time until one succeeds, if another writer was faster, which is no error.
func (r *Retries) Persisted(req ctrl.Request, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: r.limiter.When(req)}, nil
	}
	if err == nil {
		r.limiter.Forget(req)
	}
	return ctrl.Result{}, err
}

// ByReleaseLabel is a Mapper to the target of the Release that an object belongs to, or belonged to.
func ByReleaseLabel(_ context.Context, e Event) []reconcile.Request {
	return byLabels(e, shipper.ReleaseLabel)
}

// byLabels makes requests named as the label says, one for the old form and one for the new when they differ.
func byLabels(e Event, label string) []reconcile.Request {
	var out []reconcile.Request
	for _, object := range []client.Object{e.Old, e.New} {
		if object == nil || object.GetLabels()[label] == "" {
			continue
		}
		request := reconcile.Request{
			NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetLabels()[label]},
		}
		if len(out) == 0 || out[0] != request {
			out = append(out, request)
		}
	}
	return out
}
