// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// recheck is the interval of checks for changes that no event reports.
	recheck = 2 * time.Minute
	// maxConflicts is how many passes in a row may end with conflicts before a status says so: about three seconds.
	maxConflicts = 5
)

// Retrier makes the results of passes. A request is remembered from a failed pass until the next that succeeds or finds the object gone;
// every path out of a reconciler therefore ends in one of its methods or returns an error. It is safe for concurrent use.
type Retrier[R comparable] struct {
	limiter workqueue.TypedRateLimiter[R]
}

// NewRetrier returns a Retrier for one reconciler, which limiter may not be shared with.
func NewRetrier[R comparable](limiter workqueue.TypedRateLimiter[R]) *Retrier[R] {
	return &Retrier[R]{limiter: limiter}
}

// Again is the result of a pass that is to be repeated, later each time.
func (r *Retrier[R]) Again(req R) ctrl.Result { return ctrl.Result{RequeueAfter: r.limiter.When(req)} }

// Forget ends the retries of a request that succeeded, or whose object is gone.
func (r *Retrier[R]) Forget(req R) { r.limiter.Forget(req) }

// Result is what a pass over req returns that met these errors of the management cluster, some of which may be nil. Those that need a
// change are in a status.
func (r *Retrier[R]) Result(req R, met ...error) (ctrl.Result, error) {
	var retried []error
	action := Wait
	for _, err := range met {
		one := Classify(err)
		action = max(action, one)
		if one == Retry {
			retried = append(retried, err)
		}
	}
	switch action {
	case Retry:
		return ctrl.Result{}, errors.Join(retried...)
	case Requeue:
		return r.Again(req), nil
	default:
		r.Forget(req)
		return ctrl.Result{}, nil
	}
}

// ResultInCluster is what a pass over req returns that met these errors of application clusters, all of which are in a status: a retry,
// later each time, if any may pass, a check after minutes if any needs one, and otherwise nothing, because an event will come.
func (r *Retrier[R]) ResultInCluster(ctx context.Context, req R, met ...error) (ctrl.Result, error) {
	action := Wait
	for _, err := range met {
		_, one := ClassifyInCluster(err)
		action = max(action, one)
		if one >= Requeue {
			log.FromContext(ctx).V(1).Info("Trying again", "reason", Brief(err))
		}
	}
	switch action {
	case Retry, Requeue:
		return r.Again(req), nil
	case Recheck:
		r.Forget(req)
		return ctrl.Result{RequeueAfter: recheck}, nil
	default:
		r.Forget(req)
		return ctrl.Result{}, nil
	}
}

// Overtaken reports whether a pass over req met nothing but conflicts. The status stands then: the next pass reads what the other writer
// wrote, and reports more. After a few such passes in a row it is false, so that a status reports writers that fight.
func (r *Retrier[R]) Overtaken(req R, met ...error) bool {
	return len(met) > 0 && r.limiter.NumRequeues(req) < maxConflicts &&
		!slices.ContainsFunc(met, func(err error) bool { return !Conflict(err) })
}

// Persisted is what a pass over req returns that ended with writes to the management cluster, which returned err: a retry, later each
// time, after nothing but conflicts, which are no error.
func (r *Retrier[R]) Persisted(req R, err error) (ctrl.Result, error) {
	switch {
	case err == nil:
		r.Forget(req)
	case Conflict(err):
		return r.Again(req), nil
	}
	return ctrl.Result{}, err
}
