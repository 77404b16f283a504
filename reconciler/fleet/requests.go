// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const (
	// WorkTimeout bounds what a reconciler does in one cluster in one pass.
	WorkTimeout = time.Minute
	// recheck is when something is looked at again that no event will tell of.
	recheck = 2 * time.Minute
)

// RateLimiter spaces the retries of a request: 100 ms, doubled up to a minute.
func RateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](100*time.Millisecond, time.Minute)
}

// Pending tells whether err only means that a cluster is being connected to for the first time.
func Pending(err error) bool {
	var connection *Error
	return errors.As(err, &connection) && connection.Pending
}

// Outcome is what a pass returns that met these errors: an error when any is worth a retry, a look later when any needs
// one, and nothing when an event will come.
func Outcome(met []error) (ctrl.Result, error) {
	var retry []error
	result := ctrl.Result{}
	for _, err := range met {
		switch _, remedy := Classify(err); remedy {
		case Retry:
			retry = append(retry, err)
		case Recheck:
			result.RequeueAfter = recheck
		case Wait:
		}
	}
	if len(retry) > 0 {
		return ctrl.Result{}, errors.Join(retry...)
	}
	return result, nil
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
