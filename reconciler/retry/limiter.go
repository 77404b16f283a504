// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"time"

	"k8s.io/client-go/util/workqueue"
)

// Limiter spaces the retries of requests in the management cluster: 5 ms after the first failure, doubled up to 30 s.
func Limiter[R comparable]() workqueue.TypedRateLimiter[R] {
	return exponential[R](5*time.Millisecond, 30*time.Second)
}

// ClusterLimiter spaces the retries of requests to application clusters: 100 ms after the first failure, doubled up to 30 s.
func ClusterLimiter[R comparable]() workqueue.TypedRateLimiter[R] {
	return exponential[R](100*time.Millisecond, 30*time.Second)
}

// SlowLimiter spaces retries that may never succeed, as of a chart that is gone from its repository: 1 s after the first failure, doubled
// up to 5 min.
func SlowLimiter[R comparable]() workqueue.TypedRateLimiter[R] {
	return exponential[R](time.Second, 5*time.Minute)
}

func exponential[R comparable](first, last time.Duration) workqueue.TypedRateLimiter[R] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[R](first, last)
}
