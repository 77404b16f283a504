// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestAClusterThatWaitsForNoOtherIsNotHeldBack is a first rollout in two clusters, of which one does not answer: apis/rules/strategy
// gives traffic in the other as soon as it is ready there.
func TestAClusterThatWaitsForNoOtherIsNotHeldBack(t *testing.T) {
	ready := condition("Ready", "True", "", "")
	starts := func(m string) shipper.Condition { return condition("Ready", "False", "InProgress", m) }
	down := []shipper.Condition{
		condition("Operational", "False", "ClusterUnreachable", "x"), condition("Ready", "Unknown", "ClusterUnreachable", "x"),
	}
	target := func(a shipper.Condition, pods int32) *shipper.CapacityTarget {
		ct := &shipper.CapacityTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0", Generation: 2}}
		ct.Spec.Clusters = []shipper.ClusterCapacityTarget{
			{Name: "a", Percent: 100, TotalReplicaCount: 4}, {Name: "b", Percent: 100, TotalReplicaCount: 4},
		}
		ct.Status = shipper.CapacityTargetStatus{ObservedGeneration: 2, Clusters: []shipper.ClusterCapacityStatus{
			{Name: "a", AvailableReplicas: pods, Conditions: []shipper.Condition{condition("Operational", "True", "", ""), a}},
			{Name: "b", Conditions: down},
		}}
		ct.Status.Conditions = []shipper.Condition{
			condition("Operational", "False", "ClustersNotOperational", "b: x"), condition("Ready", "False", "ClustersNotReady", a.Message+" b: x"),
		}
		return ct
	}
	said := func(ct *shipper.CapacityTarget) Status {
		s := Status{Generation: ct.Status.ObservedGeneration, Conditions: ct.Status.Conditions}
		for _, c := range ct.Status.Clusters {
			s.Clusters = append(s.Clusters, Cluster{c.Name, c.Conditions})
		}
		return s
	}
	gives := func(ct *shipper.CapacityTarget) bool {
		rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0", Annotations: map[string]string{
			shipper.ReleaseGenerationAnnotation: "0", shipper.ReleaseClustersAnnotation: "a,b",
		}}}
		rel.Spec.Environment.Strategy = &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{{
			Capacity: shipper.RolloutStrategyStepValue{Contender: 100}, Traffic: shipper.RolloutStrategyStepValue{Contender: 100},
		}}}
		it := &shipper.InstallationTarget{Spec: shipper.InstallationTargetSpec{Clusters: []string{"a", "b"}, CanOverride: true}}
		it.Status.Conditions = []shipper.Condition{ready}
		tt := &shipper.TrafficTarget{Spec: shipper.TrafficTargetSpec{Clusters: []shipper.ClusterTrafficTarget{{Name: "a"}, {Name: "b"}}}}
		all := []strategy.Release{{Release: rel, Installation: it, Capacity: ct, Traffic: tt}}
		p := strategy.Make(strategy.Observed{Releases: all}, metav1.Now())
		w := p.Outcomes[0].Write.Traffic
		return w != nil && w.Clusters[0].Weight == 100 && w.Clusters[1].Weight == 0
	}
	throttle := NewThrottle()
	shown, at := target(starts("0 of 4"), 0), time.Unix(0, 0)
	for n := int32(1); n < 4; n++ { // one Pod after another, each written when its time has come
		is := target(starts(fmt.Sprint(n)+" of 4"), n)
		at = at.Add(throttle.DelayFor(Turned(said(shown), said(is)), shown, is, at))
		if left := throttle.DelayFor(Turned(said(shown), said(is)), shown, is, at); left > 0 {
			t.Fatalf("%d of 4 is held for %s more", n, left)
		}
		shown = is
	}
	is := target(ready, 4)
	if gives(shown) || !gives(is) {
		t.Fatalf("traffic is asked for in a: %t before, %t after", gives(shown), gives(is))
	}
	if held := throttle.DelayFor(Turned(said(shown), said(is)), shown, is, at); held > 0 {
		t.Errorf("that a may have traffic is written after %s", held)
	}
}
