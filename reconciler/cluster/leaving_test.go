// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// target is an InstallationTarget that is to be in one cluster and has objects in another.
func target(wanted, has string) *shipper.InstallationTarget {
	it := &shipper.InstallationTarget{Spec: shipper.InstallationTargetSpec{Clusters: []string{wanted}}}
	it.Status.Clusters = []shipper.ClusterInstallationStatus{{Name: has}}
	return it
}

func TestAReleaseAndATargetNameTheClustersTheyArePlacedOn(t *testing.T) {
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{shipper.ReleaseClustersAnnotation: "west,east"},
	}}
	for name, tc := range map[string]struct {
		object client.Object
		want   []string
	}{
		"a Release by its annotation":         {rel, []string{"east", "west"}},
		"a target by its spec and its status": {target("west", "north"), []string{"west", "north"}},
		"no other object":                     {&shipper.Application{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, placedOn(tc.object)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAnObjectMakesRequestsForLeavingClustersOnly(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Unix(0, 0))
	q := workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](),
		workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Clock: clock})
	defer q.ShutDown()
	var l leaving
	handler := l.handler(placedOn)
	handler.Update(t.Context(), event.UpdateEvent{ObjectOld: target("west", "west"), ObjectNew: target("east", "west")}, q)
	if clock.HasWaiters() && q.Len() != 0 {
		t.Error("a request is made while no cluster leaves")
	}
	l.add("west")
	handler.Update(t.Context(), event.UpdateEvent{ObjectOld: target("west", "west"), ObjectNew: target("east", "east")}, q)
	clock.Step(fleet.Settling)
	got, _ := q.Get()
	want := reconcile.Request{NamespacedName: client.ObjectKey{Name: "west"}}
	if got != want || q.Len() != 0 {
		t.Errorf("the request is %v, want %v, and %d more wait", got, want, q.Len())
	}
	l.remove("west")
	if got := l.among(func() []string { return []string{"west"} }); len(got) != 0 {
		t.Errorf("%v still leave", got)
	}
}

func TestLeavingNamesWhatTheClusterWaitsFor(t *testing.T) {
	now := metav1.Unix(2000, 0)
	left := []string{"a/web-1", "a/web-2", "b/web-1", "c/web-1", "d/web-1", "e/web-1", "f/web-1"}
	got := leavingCondition(nil, left, now.Time)
	want := []shipper.Condition{{
		Type: "Leaving", Status: corev1.ConditionTrue, Reason: "InProgress", LastTransitionTime: now,
		Message: "waits for 7 Releases: a/web-1, a/web-2, b/web-1, c/web-1, d/web-1 and 2 more; `shipperctl clusters drain` lists the " +
			"commands that move them, and spec.onLeave: Keep leaves their objects there",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	fewer := leavingCondition(got, left[:1], now.Time)
	if turned(shipper.ClusterStatus{Conditions: got}, shipper.ClusterStatus{Conditions: fewer}) {
		t.Error("one Release less is written at once")
	}
	if !turned(shipper.ClusterStatus{}, shipper.ClusterStatus{Conditions: got}) {
		t.Error("that a cluster leaves is not written at once")
	}
	if gone := leavingCondition(fewer, nil, now.Time); len(gone) != 0 {
		t.Errorf("nothing is left, and the conditions are %v", gone)
	}
}
