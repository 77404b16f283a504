// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// hears tells of requests whether something is said to have happened.
type hears struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]

	happened, looked int
}

func (h *hears) Add(reconcile.Request) { h.happened++ }

func (h *hears) AddWithOpts(how priorityqueue.AddOpts, _ ...reconcile.Request) {
	if ptr.Deref(how.Priority, 0) < 0 {
		h.looked++
	} else {
		h.happened++
	}
}

func (h *hears) GetWithPriority() (r reconcile.Request, priority int, shutdown bool) {
	return r, 0, true
}

// TestThatAClusterIsConnectedHappenedToNoApplication has a cluster be connected, as each is after a restart: whoever was at rest in it must
// not come before, or with, what is under way.
func TestThatAClusterIsConnectedHappenedToNoApplication(t *testing.T) {
	q, one := &hears{}, make([]reconcile.Request, 1)
	l := &listener{ctx: t.Context(), queue: q, mapper: func(context.Context, string) []reconcile.Request { return one }}
	l.wake("a")
	w := &watch{ctx: t.Context(), queue: q, mapper: func(context.Context, Event) []reconcile.Request { return one }}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}
	w.handler("a").OnAdd(pod, true)
	if q.happened != 0 || q.looked != 2 {
		t.Errorf("to %d something happened, and %d are looked at", q.happened, q.looked)
	}
	if w.handler("a").OnAdd(pod, false); q.happened != 1 {
		t.Error("a new Pod is nothing that happened")
	}
}
