// SPDX-License-Identifier: Apache-2.0

package targetstatus

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Results are what came of the last passes over targets of a kind, by cluster. They are lost with the process: after a start there is a
// pass over each target in each of its clusters. They are safe for concurrent use.
type Results[R any] struct {
	mu    sync.Mutex
	known map[types.NamespacedName]map[string]result[R]
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// result is of one target in one cluster.
type result[R any] struct {
	uid        types.UID
	generation int64
	value      R
}

// NewResults returns Results without any.
func NewResults[R any]() *Results[R] {
	return &Results[R]{known: map[types.NamespacedName]map[string]result[R]{}}
}

// Put keeps what came of a pass over a target as it was read, and has its status written.
func (r *Results[R]) Put(target client.Object, cluster string, value R) {
	key := client.ObjectKeyFromObject(target)
	if queue := r.put(key, cluster, result[R]{target.GetUID(), target.GetGeneration(), value}); queue != nil {
		queue.Add(reconcile.Request{NamespacedName: key}) // outside the lock: it decides the priority from the cache
	}
}

func (r *Results[R]) put(
	key types.NamespacedName, cluster string, value result[R],
) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[key] == nil {
		r.known[key] = map[string]result[R]{}
	}
	r.known[key][cluster] = value
	return r.queue
}

// Of returns the results of passes over this generation of a target, by cluster.
func (r *Results[R]) Of(target client.Object) map[string]R {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]R{}
	for cluster, one := range r.known[client.ObjectKeyFromObject(target)] {
		if one.uid == target.GetUID() && one.generation == target.GetGeneration() {
			out[cluster] = one.value
		}
	}
	return out
}

// Forget a target that is gone.
func (r *Results[R]) Forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, key)
}

// Source makes a request for each result.
func (r *Results[R]) Source() source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		r.mu.Lock()
		r.queue = q
		known := slices.Collect(maps.Keys(r.known))
		r.mu.Unlock()
		for _, key := range known {
			q.Add(reconcile.Request{NamespacedName: key})
		}
		return nil
	})
}
