// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const (
	// WorkTimeout bounds what a reconciler does in one cluster in one pass.
	WorkTimeout = time.Minute
	// lastRetry is the longest time between two retries.
	lastRetry = 30 * time.Second
	// recheck is the interval of checks for changes that no event reports.
	recheck = 2 * time.Minute
	// overtakings is how many passes in a row may lose to another writer before a status says so: about three seconds.
	overtakings = 5
)

// RateLimiter spaces the retries of a request: 100 ms, doubled up to half a minute.
func RateLimiter[R comparable]() workqueue.TypedRateLimiter[R] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[R](100*time.Millisecond, lastRetry)
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
type Retries[R comparable] struct {
	limiter workqueue.TypedRateLimiter[R]
}

// NewRetries returns Retries for one reconciler.
func NewRetries[R comparable]() *Retries[R] {
	return &Retries[R]{limiter: RateLimiter[R]()}
}

// Outcome is the result of a pass over req with these errors, all of which are in a status: a retry, later
// each time, when any is worth one, a look much later when any needs one, and otherwise nothing, because an event
// will come.
func (r *Retries[R]) Outcome(ctx context.Context, req R, met ...error) (ctrl.Result, error) {
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

// Overtaken reports whether a pass over req met nothing but another writer that was faster. What was said before stands then: the next
// pass reads what the other wrote, and says more. After a few such passes in a row it is not so any more.
func (r *Retries[R]) Overtaken(req R, met ...error) bool {
	return len(met) > 0 && r.limiter.NumRequeues(req) < overtakings &&
		!slices.ContainsFunc(met, func(err error) bool { return !apierrors.IsConflict(err) })
}

// Persisted is what a pass over req returns that ends with writes to the management cluster, of which err is what came: a retry, later
// each time until one succeeds, if another writer was faster, which is no error.
func (r *Retries[R]) Persisted(req R, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: r.limiter.When(req)}, nil
	}
	if err == nil {
		r.limiter.Forget(req)
	}
	return ctrl.Result{}, err
}
