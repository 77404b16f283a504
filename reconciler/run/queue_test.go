// SPDX-License-Identifier: Apache-2.0

package run

import (
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"shipper.dev/shipper/reconciler/retry"
)

// Runs of one namespace, created without end, delay those of another by the decisions under way.
func TestRunsOfOneNamespaceLeaveWorkersToOthers(t *testing.T) {
	q := Queue(4)("runs", retry.Limiter[ctrl.Request]())
	defer q.ShutDown()
	named := func(namespace string, i int) ctrl.Request {
		return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: strconv.Itoa(i)}}
	}
	for i := range 1000 {
		q.Add(named("many", i))
		q.Add(named("crowd", i))
	}
	var busy []ctrl.Request
	for range 4 { // as many workers
		next, _ := q.Get()
		busy = append(busy, next)
	}
	of := map[string]int{}
	for _, b := range busy {
		of[b.Namespace]++
	}
	if of["many"] != 2 || of["crowd"] != 2 {
		t.Fatalf("workers by namespace: %v", of)
	}
	q.Add(named("other", 0))
	for waited := range 3 {
		q.Done(busy[waited])
		if next, _ := q.Get(); next.Namespace == "other" {
			return
		}
	}
	t.Error("another's run is not decided about within three decisions")
}
