// SPDX-License-Identifier: Apache-2.0

// Package retry says what becomes of a pass that met errors: the one place where errors of the management cluster's
// API are distinguished.
package retry

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
)

// The retries of a request: the first after firstRetry, each later one after twice the time, up to lastRetry.
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// Action is what helps against an error.
type Action int

// The remedies, the weakest first.
const (
	// Wait: only a change helps, and its event triggers the next pass.
	Wait Action = iota
	// Requeue: the cache was out of date, the object was changed meanwhile, or a block that the cache lacks refused the write;
	// reading again helps, and is no error to report.
	Requeue
	// Retry: the same may succeed later.
	Retry
)

// Classify says what helps against err.
func Classify(err error) Action {
	var broken *chart.Error
	switch {
	case err == nil:
		return Wait
	case errors.As(err, &broken):
		if broken.Retry {
			return Retry
		}
		return Wait
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), Blocked(err) != "":
		return Requeue
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return Wait
	case errors.Is(err, context.Canceled):
		return Requeue
	}
	return Retry
}

// Blocked says, as conditions do, which RolloutBlock the gate named first when it refused a write; empty for every
// other error. What the gate says beyond that changes with time.
func Blocked(err error) string {
	if name := block.RefusedBy(err); name != "" {
		return shipper.BlockedBy + name
	}
	return ""
}

// Retrier makes the results of passes. It is safe for concurrent use.
type Retrier struct {
	limiter workqueue.TypedRateLimiter[reconcile.Request]
}

// NewRetrier returns a Judge.
func NewRetrier() *Retrier { return &Retrier{limiter: RateLimiter()} }

// RateLimiter spaces the retries of a request.
func RateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry)
}

// Result is what a pass over req returns that met these errors, some of which may be nil.
func (j *Retrier) Result(req ctrl.Request, met ...error) (ctrl.Result, error) {
	var retry []error
	worst := Wait
	for _, err := range met {
		remedy := Classify(err)
		worst = max(worst, remedy)
		if remedy == Retry {
			retry = append(retry, err)
		}
	}
	switch worst {
	case Retry:
		return ctrl.Result{}, errors.Join(retry...)
	case Requeue:
		return ctrl.Result{RequeueAfter: j.limiter.When(req)}, nil
	default:
		j.limiter.Forget(req)
		return ctrl.Result{}, nil
	}
}
